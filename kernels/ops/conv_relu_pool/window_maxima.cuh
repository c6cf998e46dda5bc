// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/lib/element.h"
#include "kernels/ops/conv_relu_pool/conv_relu_pool.h"
#include "kernels/simt/simt.h"

/// The end of the forward pass on tensor cores: row 8 q + r of the 32 that a warp multiplies is element q of window r,
/// so that a thread's accumulators are four elements of one window.
namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {

inline constexpr int kWarpWindows = 8;
inline constexpr int kWarpElements = 4;  // of each window
inline constexpr int kWarpRows = kWarpWindows * kWarpElements;

template <class T>
struct alignas(2 * sizeof(T)) Pair {
  T elements[2];
};

/// A thread's outputs: of one window, channels 8 j and 8 j + 1 after its first.
template <int kTiles>
struct WindowMaxima {
  struct Maximum {
    float value;
    int element;
  };
  Maximum maxima[kTiles][2] = {};

  using Bias = float[kTiles][2];

  /// That of the same channels; 0 beyond the last one.
  template <class T>
  __device__ static void load(Bias& bias, const T* b, int channel, int channels) {
    SIMT_UNROLL_ON_GPU
    for (int j = 0; j < kTiles; ++j) {
      SIMT_UNROLL_ON_GPU
      for (int c = 0; c < 2; ++c)
        bias[j][c] = channel + 8 * j + c < channels ? lib::to_f32(b[channel + 8 * j + c]) : 0.0f;
    }
  }

  /// Takes elements from `first_element` on, of `elements`, in sums: [i][j][2 h + c] is element 2 i + h of channel
  /// 8 j + c.
  __device__ void take(const float (&sums)[2][kTiles][4], int first_element, int elements, const Bias& bias) {
    SIMT_UNROLL_ON_GPU
    for (int j = 0; j < kTiles; ++j) {
      SIMT_UNROLL_ON_GPU
      for (int c = 0; c < 2; ++c) {
        Maximum& best = maxima[j][c];
        SIMT_UNROLL_ON_GPU
        for (int q = 0; q < kWarpElements; ++q) {
          const int element = first_element + q;
          const float z = sums[q / 2][j][q % 2 * 2 + c] + bias[j][c];
          const bool takes = element == 0 || z > best.value || z != z;  // a NaN takes all, and no number takes it back
          if (takes && element < elements) best = {z, element};
        }
      }
    }
  }

  template <class T>
  __device__ void store(T* y, std::uint8_t* codes, std::int64_t window, int first_channel, int channels) const {
    T* const outputs = y + window * channels;
    const bool in_pairs = channels % 2 == 0 && reinterpret_cast<std::uintptr_t>(y) % sizeof(Pair<T>) == 0;
    SIMT_UNROLL_ON_GPU
    for (int j = 0; j < kTiles; ++j) {
      const int channel =
          first_channel + 8 * j;  // even: its code and that of its neighbour are a byte of this thread's
      if (channel >= channels) continue;
      Pair<T> pair;
      unsigned code[2];
      SIMT_UNROLL_ON_GPU
      for (int c = 0; c < 2; ++c) {
        const Maximum& best = maxima[j][c];
        const bool cut_off = best.value <= 0 || channel + c >= channels;
        pair.elements[c] = lib::from_f32<T>(cut_off ? 0.0f : best.value);
        code[c] = cut_off ? kCutOff : static_cast<unsigned>(best.element);
      }
      if (in_pairs) {
        simt::store_as(outputs + channel, pair);
      } else {
        outputs[channel] = pair.elements[0];
        if (channel + 1 < channels) outputs[channel + 1] = pair.elements[1];
      }
      codes[window * ((channels + 1) / 2) + channel / 2] = packed_codes(code[0], code[1]);
    }
  }
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
