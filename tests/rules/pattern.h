// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <regex.h>
#include <memory>
#include <string>
#include <vector>

namespace gradring::rules {

/// A POSIX extended regular expression. Not std::regex, whose header costs each file three seconds to compile.
class Pattern {
 public:
  explicit Pattern(const char* text, bool ignore_case = false);

  bool found_in(const std::string& line) const;
  /// Each place where it is found, as the whole match and its groups.
  std::vector<std::vector<std::string>> all_in(const std::string& line) const;

 private:
  std::shared_ptr<regex_t> regex_;  // shared, so that tables of patterns can be copied
};

}  // namespace gradring::rules
