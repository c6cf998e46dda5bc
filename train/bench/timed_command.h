// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace gradring::train::bench {

/// From the start of a program to its end, by the clock on the wall. It hears nothing and is not heard.
///
/// Errors    DeviceError if it cannot be started; EnvironmentError if it does not return 0.
std::chrono::duration<double> time_command(const std::vector<std::string>& words);

}  // namespace gradring::train::bench
