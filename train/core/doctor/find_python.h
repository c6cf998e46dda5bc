// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/options/environment_variable.h"

namespace gradring::train {

/// The search for a Python that imports torch, for comparisons only.
struct PythonSearch {
  std::optional<std::string> python;  ///< the first that imports torch
  std::string torch_version;          ///< "1.13.0a0"; empty if there is none
  std::vector<std::string> tried;     ///< "/usr/bin/python3: does not import torch", ...

  /// The Python found, or all that were tried and what to do.
  std::string to_string() const;
};

/// Tries GRADRING_PYTHON, then every python3 along PATH, until one imports torch. Starts each of them; takes seconds.
PythonSearch search_python_with_torch(const VariableLookup& lookup = system_variable);

}  // namespace gradring::train
