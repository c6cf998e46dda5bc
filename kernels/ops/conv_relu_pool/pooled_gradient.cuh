// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/lib/half_pairs.h"
#include "kernels/lib/reference.h"
#include "kernels/ops/conv2d/products.cuh"
#include "kernels/ops/conv_relu_pool/conv_relu_pool.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {

/// Of eight 16-bit elements, those whose channels have a bit in `kept`, which is the lowest of a code's four; the
/// others as 0.
__device__ inline uint4 kept_elements(const uint4& eight, std::uint32_t kept) {
  const std::uint32_t even = kept << 7;  // the highest bits of bytes, of which permute_bytes makes masks
  const std::uint32_t odd = kept << 3;
  return {eight.x & lib::permute_bytes<0xcc88>(even, odd), eight.y & lib::permute_bytes<0xdd99>(even, odd),
          eight.z & lib::permute_bytes<0xeeaa>(even, odd), eight.w & lib::permute_bytes<0xffbb>(even, odd)};
}

/// Which of eight channels' codes name each element of a window of 2 x 2, in row-major order: bits as `kept` above, and
/// any in between.
struct ElementsOfTwoByTwo {
  std::uint32_t names[4];

  __device__ explicit ElementsOfTwoByTwo(std::uint32_t codes) {
    using lib::kBitsOfA, lib::kBitsOfB, lib::kBitsOfC;
    const std::uint32_t by2 = codes >> 1;  // to the lowest of a code's four bits: the second,
    const std::uint32_t by8 = codes >> 3;  // the highest
    names[0] = lib::combine_bits<~(kBitsOfA | kBitsOfB | kBitsOfC) & 0xffu>(codes, by2, by8);
    names[1] = lib::combine_bits<kBitsOfA & ~kBitsOfB>(codes, by2, by8);
    names[2] = lib::combine_bits<~kBitsOfA & kBitsOfB>(codes, by2, by8);
    names[3] = lib::combine_bits<kBitsOfA & kBitsOfB & ~kBitsOfC>(codes, by2, by8);
  }
};

/// dy and the codes, of which dz is made: dy where the code names the element of a window, 0 elsewhere.
template <class T>
struct PooledGradient {
  const T* dy;
  const std::uint8_t* codes;
  int channels;
  int code_bytes;  ///< of a position
  bool aligned;    ///< eight channels of dy, and of the codes, are one aligned access

  /// Eight channels of a window.
  struct Vector {
    uint4 dy;
    std::uint32_t codes;
  };
  __device__ Vector fetch(int window, int channel) const {
    return {simt::load_as<uint4>(dy + std::int64_t{window} * channels + channel),
            simt::load_as<std::uint32_t>(codes_of(window) + channel / 2)};
  }
  __device__ const std::uint8_t* codes_of(int window) const { return codes + std::int64_t{window} * code_bytes; }
};

template <class T>
PooledGradient<T> pooled_gradient(const BackwardArgs& args) {
  const Geometry& g = args.geometry;
  const auto* dy = static_cast<const T*>(args.dy);
  lib::narrow<int>("conv_relu_pool", "positions", g.out_positions());
  return {.dy = dy,
          .codes = args.codes,
          .channels = lib::narrow<int>("conv_relu_pool", "out_channels", g.conv.out_channels),
          .code_bytes = static_cast<int>(g.code_bytes_of_position()),
          .aligned = conv2d::has_aligned_rows(dy, g.conv.out_channels) &&
                     reinterpret_cast<std::uintptr_t>(args.codes) % 4 == 0};
}

/// Calls launch(dz), with dz in f16 or bf16, if its vectors are aligned.
///
/// Returns   whether they are.
template <class Launch>
bool with_aligned_gradient(const BackwardArgs& args, const Launch& launch) {
  bool aligned = false;
  lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
    const PooledGradient<T> dz = pooled_gradient<T>(args);
    aligned = dz.aligned;
    if (aligned) launch(dz);
  });
  return aligned;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
