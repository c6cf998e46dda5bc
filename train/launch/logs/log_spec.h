// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "train/launch/logs/stream_map.h"

namespace gradring::train {

/// Where the workers' output goes. What is neither redirected nor teed is the launcher's own.
struct LogSpec {
  std::string folder{};      ///< --log-dir; empty: none
  StreamMap redirects{};     ///< into files
  StreamMap tee{};           ///< into files, and to the terminal with a prefix
  std::vector<int> shown{};  ///< local ranks whose output reaches the terminal; empty: all
  std::string prefix{};      ///< a template (line_prefix.h); empty: the default
};

}  // namespace gradring::train
