// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "train/options/command_line.h"

namespace gradring::train {

/// --simulate-gpu without a simulated GPU. Otherwise its value is a card of kernels/simulated_gpu/cards, or a user's file
/// that describes one.
inline constexpr const char* kRealGpus = "none";

/// "none|t4|...|FILE.card", for --help.
std::string simulated_gpu_values();

/// A file is not opened here.
///
/// Errors    UsageError: the value found, the names, and the nearest.
std::string parse_simulated_gpu(std::string_view option, std::string_view text);

/// --simulate-gpu of a command other than `gradring train`.
Option simulated_gpu_option(std::string help, std::string& card);

}  // namespace gradring::train
