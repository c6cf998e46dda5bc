// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/simulated_gpu/findings/finding_kind.h"

namespace gradring::simulated_gpu {

/// Findings that are left out: a line of a file, whose fields must all match; `#` begins a comment.
///
///     kind=shared-race kernel=reduce.* file=reduce.cu line=31
///
/// `kernel` is a regular expression (ECMAScript) for the whole name, `file` the end of the path.
class Suppression {
 public:
  /// Errors    InvalidArgument: not as above.
  explicit Suppression(const std::string& line);

  bool matches(FindingKind kind, const std::string& kernel, std::string_view file, unsigned line) const;

 private:
  bool set(std::string_view name, const std::string& value);

  std::optional<FindingKind> kind_;
  std::optional<std::regex> kernel_;
  std::string file_;
  unsigned line_ = 0;
};

/// Of the text of a file; lines without a field are skipped.
///
/// Errors    InvalidArgument that names the line.
std::vector<Suppression> suppressions_from(const std::string& text);

}  // namespace gradring::simulated_gpu
