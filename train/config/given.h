// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

namespace gradring::train {

/// A value that somebody wrote, and where: "command line", "GRADRING_LR", "file.toml:3".
struct Given {
  std::string text;
  std::string source;
};

/// By the option's name, as on the command line without the dashes.
using GivenOptions = std::map<std::string, Given>;

}  // namespace gradring::train
