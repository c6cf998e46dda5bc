// SPDX-License-Identifier: Apache-2.0
// Idea: every 64 elements give one partial sum, whatever the grid or the machine; then one block adds up the partial
//   sums in a fixed order. Nothing depends on the order of arrival, so the same input gives the same bits, also if
//   other ranks computed some of the partial sums.
// Mapping: blocks: each thread takes a pack, on a CPU a whole block of 64 elements; on a GPU 16 neighbouring threads
//   have a block, and add up by shuffles. A non-finite element makes its partial sum NaN; only in such a block is its
//   index searched for. total: partial sum i is added to sum i % 1024, of which a thread has one on a GPU and 32 on a
//   CPU; then 32 threads add up 32 of these sums each, and one thread those.
// Traffic and bound: reads each element once and writes an eighth of a byte for each; bound by memory, for few elements
//   by the two launches.
// Still slow because: the second launch costs as much as the first for a small model, and its one block reads all
//   partial sums. Each array of partial sums is added up by a launch of its own, and read again.
// Limits: float sums: the more elements, the more rounding (see the contract). Less than 2^32 blocks.

#include <limits>

#include "kernels/lib/element.h"
#include "kernels/lib/pack.h"
#include "kernels/lib/split_k.h"
#include "kernels/ops/gradient_statistics/gradient_statistics.h"
#include "kernels/ops/gradient_statistics/total.cuh"
#include "kernels/ops/step_state/steps.cuh"
#include "kernels/simt/simt.h"

namespace gradring::kernels::gradient_statistics {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kSums = lib::kPack < 8 ? lib::kPack : 8;
constexpr int kBlockThreads = kBlock / lib::kPack;  // that share a block of elements
constexpr int kGrain = kBlockThreads > 1 ? 32 : 1;  // threads that take the same turns, as warps shuffle together
constexpr unsigned kTotalThreads = lib::kCopyKind == DeviceKind::cuda ? 1024 : 32;  // each has its price on a CPU
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
static_assert(kBlock % lib::kPack == 0 && lib::kPack % kSums == 0, "a block is whole packs, a pack whole rows of sums");

/// How many of the `wanted` elements from `at` on there are.
__device__ inline int elements_at(std::size_t at, std::size_t wanted, std::size_t elements) {
  if (at >= elements) return 0;
  return static_cast<int>(elements - at < wanted ? elements - at : wanted);
}

/// A thread's part of a block: the square of element i is added to sum i % kSums.
struct BlockSums {
  float least;  // what is smaller is tiny
  float sums[kSums] = {};
  int tiny = 0;

  __device__ void take(int i, float value) {
    tiny += fabsf(value) < least ? 1 : 0;
    sums[i % kSums] += value * value;
  }
  /// The same, in two loops, since compilers vectorize each of them.
  template <class Pack>
  __device__ void take_pack(const Pack& pack) {
    for (int i = 0; i < lib::kPack; ++i) tiny += fabsf(lib::to_f32(pack[i])) < least ? 1 : 0;
    for (int row = 0; row < lib::kPack; row += kSums)
      for (int j = 0; j < kSums; ++j) {
        const float value = lib::to_f32(pack[row + j]);
        sums[j] += value * value;
      }
  }
  /// Adds up over the threads that share the block, neighbours in a warp. A whole warp calls it.
  __device__ float sum_over_threads() {
    float sum = 0;
    for (const float each : sums) sum += each;
    SIMT_UNROLL
    for (int other = kBlockThreads / 2; other > 0; other /= 2) {
      sum += __shfl_xor_sync(~0u, sum, other);
      tiny += __shfl_xor_sync(~0u, tiny, other);
    }
    return sum;
  }
  /// Writes the results of the block, whose `count` elements begin at `x`. They are searched only if the sum is not
  /// finite: an element is not, or the sum has overflowed.
  template <class T>
  __device__ void write(float sum, const T* x, int count, float& block, float& note) const {
    const int first = isfinite(sum) ? count : first_non_finite(x, count);
    block = first < count ? kNaN : sum;
    note = static_cast<float>(first < count ? -1 - first : tiny);
  }
  template <class T>
  __device__ static int first_non_finite(const T* x, int count) {
    for (int i = 0; i < count; ++i)
      if (!isfinite(lib::to_f32(x[i]))) return i;
    return count;
  }
};

template <bool kWide, class T>
__global__ void gradient_statistics_blocks_kernel(const T* __restrict__ x, std::size_t elements, float least,
                                                  float* __restrict__ blocks, float* __restrict__ notes) {
  const std::size_t packs = block_count(elements) * kBlockThreads;
  for (std::size_t pack : simt::grid_range((packs + kGrain - 1) / kGrain * kGrain)) {
    const std::size_t at = pack * lib::kPack;
    const int count = elements_at(at, lib::kPack, elements);
    BlockSums sums{.least = least};
    if (count == lib::kPack)
      sums.take_pack(lib::load_pack<kWide>(x + at));
    else
      for (int i = 0; i < count; ++i) sums.take(i, lib::to_f32(x[at + i]));
    const float sum = sums.sum_over_threads();
    const std::size_t block = pack / kBlockThreads;
    if (pack % kBlockThreads == 0 && count > 0)
      sums.write(sum, x + at, elements_at(at, kBlock, elements), blocks[block], notes[block]);
  }
}

__global__ void __launch_bounds__(kTotalThreads)
    gradient_statistics_total_kernel(Total total, step_state::PrepareArgs prepare) {
  write_total<kTotalThreads>(total);
  if (threadIdx.x == 0 && prepare.state) step_state::prepare_step(prepare);
}

__global__ void gradient_statistics_add_up_kernel(PartialSum sum) {
  for (std::size_t i : simt::grid_range(static_cast<std::size_t>(sum.elements)))
    sum.to[i] = lib::sum_of_slices(sum.slices, static_cast<int>(sum.count), 1, sum.stride, i);
}

void run_blocks(Stream& stream, const BlocksArgs& args) {
  check_args(args);
  if (args.elements == 0) return;
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    const T* const x = static_cast<const T*>(args.x);
    const simt::Config config = lib::grid_for_packs(stream, args.elements);
    lib::with_bool(lib::is_pack_aligned(x), [&](auto wide) {
      simt::launch_flat<gradient_statistics_blocks_kernel<wide.value, T>>(stream, config, x, args.elements, args.tiny,
                                                                          args.blocks, args.notes);
    });
  });
}

void enqueue_total(Stream& stream, const Total& total, const step_state::PrepareArgs& prepare) {
  const simt::Config config{.grid = dim3(1), .block = dim3(kTotalThreads)};
  simt::launch<gradient_statistics_total_kernel>(stream, config, total, prepare);
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  run_blocks(stream, blocks_of(args));
  enqueue_total(stream, total_of(args), {});
}

void add_up(Stream& stream, std::span<const PartialSum> sums) {
  for (const PartialSum& sum : sums)
    simt::launch_flat<gradient_statistics_add_up_kernel>(
        stream, simt::grid_for(stream, static_cast<std::size_t>(sum.elements)), sum);
}

void finish(Stream& stream, const FinishArgs& args) {
  check_args(args);
  add_up(stream, args.partial_sums);
  for (const Run& run : args.runs)
    run_blocks(stream, {.x = run.x,
                        .elements = run.elements,
                        .tiny = args.tiny,
                        .blocks = args.blocks + run.first_block,
                        .notes = args.notes + run.first_block});
  enqueue_total(stream, total_of(args), args.prepare);
}

}  // namespace

Variant two_stage() { return {"two_stage", run, run_blocks, finish, add_up, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gradient_statistics
