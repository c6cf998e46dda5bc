// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/kernels/simulated_gpu/values.h"

namespace gradring::simulated_gpu {

/// The first lines of a TestKernel on an array of 32-bit words, its first parameter: %address is that of the word of
/// %thread.
inline const std::string kThread =
    ".reg .b32 %thread; .reg .b64 %address; .reg .pred %q<9>; .reg .b16 %rs<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg "
    ".b64 %rd<9>;\n"
    "mov.u32 %thread, %tid.x; mul.wide.u32 %address, %thread, 4; add.u64 %address, %address, %p0;\n";

/// 0, 1, 2, ...
inline std::vector<U32> numbered(std::size_t count) {
  std::vector<U32> words(count);
  for (std::size_t i = 0; i < count; ++i) words[i] = static_cast<U32>(i);
  return words;
}

}  // namespace gradring::simulated_gpu
