// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace gradring::train::doctor {

/// One thing that was looked for.
struct Finding {
  std::string name;      ///< "libcurl"
  std::string found;     ///< what there is: "libcurl/7.88.1", "none"
  std::string advice{};  ///< what would mend it, in one line; empty where nothing is missing
};

struct Section {
  std::string title;  ///< "Built in"
  std::vector<Finding> findings;
};

}  // namespace gradring::train::doctor
