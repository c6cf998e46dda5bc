// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gradring::train {

/// What torchrun puts before each line of a teed stream: "[default0]:".
constexpr const char* kDefaultLinePrefix = "[${role_name}${local_rank}]:";

/// Whose line it is.
struct LineOwner {
  std::string role_name = "default";
  int rank = 0;
  int local_rank = 0;
  int node_rank = 0;
};

/// What stands before each line of one worker: a template in which ${role_name}, ${rank}, ${local_rank}, ${node_rank}
/// and ${time} are filled in. Anything else stays as it is.
class LinePrefix {
 public:
  /// An empty text is the default.
  LinePrefix(std::string text, const LineOwner& owner);

  /// With the time of now, "2026-01-31 12:00:00.123", if the template has one.
  std::string now() const;

 private:
  std::string text_;
};

}  // namespace gradring::train
