// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/engine/kernel_name.h"

namespace gradring::simt {
namespace {

constexpr std::string_view kNoName = "(anonymous namespace)";

std::string without_anonymous(std::string_view text) {
  std::string rest(text);
  for (std::size_t at = rest.find(kNoName); at != rest.npos; at = rest.find(kNoName, at))
    rest.erase(at, kNoName.size() + 2);  // and the two colons
  return rest;
}

/// The text between "KernelTag<&" and its ">".
std::string_view argument_of(std::string_view tag) {
  const std::size_t begin = tag.find('<') + 1;
  std::string_view kernel = tag.substr(begin, tag.rfind('>') - begin);
  if (kernel.starts_with('&')) kernel.remove_prefix(1);
  if (kernel.starts_with('(') && kernel.ends_with(')') && !kernel.starts_with(kNoName)) {
    kernel.remove_prefix(1);
    kernel.remove_suffix(1);
  }
  return kernel;
}

}  // namespace

std::string short_name_of(std::string_view demangled) {
  const std::string text = without_anonymous(demangled);
  std::size_t begin = 0;
  std::size_t end = 0;
  for (int depth = 0; end < text.size(); ++end) {
    const char letter = text[end];
    if (letter == '<') ++depth;
    if (letter == '>') --depth;
    if (depth > 0) continue;
    if (letter == '(') break;  // the parameters
    if (letter == ' ' || letter == ':') begin = end + 1;
  }
  return text.substr(begin, end - begin);
}

std::string detail::name_in(const std::type_info& tag) { return short_name_of(argument_of(demangled(tag.name()))); }

}  // namespace gradring::simt
