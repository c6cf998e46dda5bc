// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace gradring::train::doctor {

struct NvidiaDriver {
  int cuda_version = 0;  ///< 13000 is 13.0: the newest that it can run
  int devices = 0;
  std::string problem;  ///< why it does not start, in its own words; empty if it does
};

/// Asks libcuda.so.1, which the driver brings, without being linked to it; nothing where there is none.
std::optional<NvidiaDriver> find_nvidia_driver();

}  // namespace gradring::train::doctor
