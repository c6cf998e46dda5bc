// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/launch/worker_environment.h"

namespace gradring::train {

/// Where a Python that imports torch was looked for: the peer of comparisons. gradring itself needs none.
struct PythonSearch {
  std::optional<std::string> python;  ///< the first that imports torch
  std::string torch_version;          ///< "1.13.0a0"; empty if there is none
  std::vector<std::string> tried;     ///< one line for each that does not: "/usr/bin/python3: does not import torch"

  /// For people: which was found, or all that was tried, and what to do.
  std::string to_string() const;
};

/// Tries GRADRING_PYTHON, then every python3 along PATH, until one imports torch. Starts each of them; takes seconds.
PythonSearch search_python_with_torch(const VariableLookup& lookup = system_variable);

/// The same, for those who need no reasons.
std::optional<std::string> find_python_with_torch();

}  // namespace gradring::train
