// SPDX-License-Identifier: Apache-2.0
// Idea: the random number of an element is a function of where the element is, not of which thread asks for it, or when.
//   So the mask is not stored, and the backward pass computes it again. One call of Philox gives four words: a thread
//   takes four neighbours.
// Mapping: a sample is cut into chunks of 128 groups of four elements; each warp computes a chunk, lanes over its
//   groups. Where whole groups make up a sample, a group is one access.
// Traffic and bound: reads and writes each element once; 40 multiplications and some 60 other integer instructions a
//   group: bound by issuing them in 16 bits, close to memory's time in f32.
// Still slow because: the numbers cost more than the access. 7 rounds of Philox would pass the same tests of randomness,
//   with bits that no other implementation has. Better: in the kernel that has x in registers.
// Limits: 2^34 elements a sample.

#include <cstdint>

#include "kernels/lib/channel_vector.h"
#include "kernels/lib/element.h"
#include "kernels/lib/rows.h"
#include "kernels/ops/dropout/dropout.h"
#include "kernels/runtime/philox.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::dropout {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kGroup = 4;          // elements of one call of Philox
constexpr int kGroupsOfRow = 128;  // groups of a chunk

/// What a kernel needs of Args.
struct Mask {
  Draw draw;
  std::int64_t samples, elements;
  std::uint32_t threshold;
  float scale;

  __host__ __device__ std::int64_t groups() const { return (elements + kGroup - 1) / kGroup; }
  __host__ __device__ std::int64_t chunks() const { return (groups() + kGroupsOfRow - 1) / kGroupsOfRow; }
  __device__ std::uint64_t number_of(std::int64_t sample) const {
    return static_cast<std::uint64_t>(draw.first + draw.stride * sample);
  }
  /// The upper half of all counters of this launch.
  __device__ std::uint64_t counter_high() const {
    return (0x80000000ull + static_cast<std::uint64_t>(draw.layer)) << 32 | static_cast<std::uint32_t>(*draw.step);
  }
};

template <class T, bool kWide>
__global__ void dropout_groups_kernel(SIMT_GRID_CONST(Mask) mask, const T* x, T* y) {
  const std::uint64_t seed = mask.draw.seed;
  const std::uint64_t high = mask.counter_high();
  const std::uint32_t threshold = mask.threshold;
  const float scale = mask.scale;
  const std::int64_t chunks = mask.chunks();
  for (std::int64_t row : lib::row_range(mask.samples * chunks)) {
    const std::int64_t sample = row / chunks;
    const std::int64_t first = (row - sample * chunks) * kGroupsOfRow;
    const std::int64_t left = mask.groups() - first;
    const std::uint64_t low = mask.number_of(sample) << 32 | static_cast<std::uint64_t>(first);
    const std::int64_t start = sample * mask.elements + first * kGroup;
    for (int group : lib::lane_range(left < kGroupsOfRow ? static_cast<int>(left) : kGroupsOfRow)) {
      const auto words = philox(seed, low + static_cast<std::uint64_t>(group), high);
      const std::int64_t at = start + group * kGroup;
      if constexpr (kWide) {
        float values[kGroup];
        lib::load_channels(x + at, values);
        SIMT_UNROLL
        for (int j = 0; j < kGroup; ++j) values[j] *= words[static_cast<unsigned>(j)] >= threshold ? scale : 0.0f;
        lib::store_channels(y + at, values);
      } else {
        const std::int64_t rest = mask.elements - (first + group) * kGroup;
        SIMT_UNROLL
        for (int j = 0; j < kGroup; ++j)
          if (j < rest)
            y[at + j] = lib::from_f32<T>(lib::to_f32(x[at + j]) *
                                         (words[static_cast<unsigned>(j)] >= threshold ? scale : 0.0f));
      }
    }
  }
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  if (args.samples == 0 || args.elements == 0) return;
  const Mask mask{.draw = args.draw,
                  .samples = args.samples,
                  .elements = args.elements,
                  .threshold = threshold_of(args.p),
                  .scale = static_cast<float>(1 / (1 - args.p))};
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    const T* x = static_cast<const T*>(args.x);
    T* y = static_cast<T*>(args.y);
    lib::with_bool(lib::fit_vectors<T, kGroup>(args.elements, {x, y}), [&](auto wide) {
      simt::launch_flat<dropout_groups_kernel<T, wide.value>>(
          stream, lib::rows_for(stream, mask.samples * mask.chunks(), args.samples * args.elements), mask, x, y);
    });
  });
}

}  // namespace

Variant groups() { return {"groups", run, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::dropout
