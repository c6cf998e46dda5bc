// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace gradring::train::bench {

/// Starts a program, along PATH, that hears nothing and is not heard. Whoever calls waits for its end.
///
/// Errors    DeviceError if it cannot be started.
pid_t start_silently(const std::vector<std::string>& words);

/// From the start of a program to its end, by the clock on the wall. It hears nothing and is not heard.
///
/// Errors    DeviceError if it cannot be started; EnvironmentError if it does not return 0.
std::chrono::duration<double> time_command(const std::vector<std::string>& words);

}  // namespace gradring::train::bench
