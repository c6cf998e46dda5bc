// SPDX-License-Identifier: Apache-2.0
#include "tests/rules/pattern.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace gradring::rules {

Pattern::Pattern(const char* text, bool ignore_case)
    : regex_(new regex_t, [](regex_t* regex) {
        regfree(regex);
        delete regex;
      }) {
  if (regcomp(regex_.get(), text, REG_EXTENDED | (ignore_case ? REG_ICASE : 0)) != 0)
    throw std::invalid_argument(std::string("not a regular expression: ") + text);
}

bool Pattern::found_in(const std::string& line) const {
  return regexec(regex_.get(), line.c_str(), 0, nullptr, 0) == 0;
}

std::vector<std::vector<std::string>> Pattern::all_in(const std::string& line) const {
  std::vector<std::vector<std::string>> found;
  std::array<regmatch_t, 8> groups;
  std::size_t start = 0;
  while (start <= line.size() &&
         regexec(regex_.get(), line.c_str() + start, groups.size(), groups.data(), start > 0 ? REG_NOTBOL : 0) == 0) {
    std::vector<std::string>& match = found.emplace_back();
    for (const regmatch_t& group : groups)
      match.push_back(group.rm_so < 0 ? ""
                                      : line.substr(start + static_cast<std::size_t>(group.rm_so),
                                                    static_cast<std::size_t>(group.rm_eo - group.rm_so)));
    start += static_cast<std::size_t>(std::max<regoff_t>(groups[0].rm_eo, 1));
  }
  return found;
}

}  // namespace gradring::rules
