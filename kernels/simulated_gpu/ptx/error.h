// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

#include "kernels/base/error.h"

namespace gradring::ptx {

/// A text that is not PTX, or a fat binary that is damaged; or one of them with something that is not known here.
///
/// what() of a text: "PTX line 41: register %r9 is not declared: add.s32 %r1, %r9, 2;"
class PtxError : public Error {
 public:
  using Error::Error;
};

/// Texts and numbers as one text, for messages: joined("a block has ", 7, " threads").
template <class... Parts>
std::string joined(const Parts&... parts) {
  std::string all;
  const auto append = [&all]<class Part>(const Part& part) {
    if constexpr (std::is_convertible_v<const Part&, std::string_view>)
      all += std::string_view(part);
    else if constexpr (std::is_same_v<Part, char>)
      all += part;
    else
      all += std::to_string(part);
  };
  (append(parts), ...);
  return all;
}

/// "0x1f", with zeros in front up to a number of digits.
inline std::string hexadecimal(std::uint64_t number, int digits = 1) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%0*llx", digits, static_cast<unsigned long long>(number));
  return text;
}

}  // namespace gradring::ptx

namespace gradring::simulated_gpu {
using ptx::hexadecimal;
using ptx::joined;
}  // namespace gradring::simulated_gpu
