// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "train/options/environment_variable.h"

namespace gradring::train::doctor {

/// The result of one check.
struct Finding {
  std::string name;      ///< "libcurl"
  std::string found;     ///< "libcurl/7.88.1", "none"
  std::string advice{};  ///< how to fix it, in one line; empty if nothing is missing
};

struct Section {
  std::string title;  ///< "Built in"
  std::vector<Finding> findings;
};

/// Examines this program and this machine: what was built in, what was found, what a training would use. Starts every
/// Python on PATH until one imports torch, which takes seconds. Changes nothing.
std::vector<Section> examine(const VariableLookup& environment);

}  // namespace gradring::train::doctor
