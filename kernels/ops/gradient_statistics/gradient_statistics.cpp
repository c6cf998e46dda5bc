// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/gradient_statistics/gradient_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/lib/reference.h"

namespace gradring::kernels::gradient_statistics {
namespace {

template <class SomeArgs>
void check_results(const SomeArgs& args) {
  lib::check_pointers("gradient_statistics", {{"sum", args.sum},
                                              {"non_finite", args.non_finite},
                                              {"first_non_finite", args.first_non_finite},
                                              {"tiny_count", args.tiny_count}});
}

}  // namespace

void check_args(const BlocksArgs& args) {
  lib::check_floating("gradient_statistics", "dtype", args.dtype);
  if (args.elements)
    lib::check_pointers("gradient_statistics", {{"x", args.x}, {"blocks", args.blocks}, {"notes", args.notes}});
}

void check_args(const Args& args) {
  lib::check_floating("gradient_statistics", "dtype", args.dtype);
  if (args.elements) lib::check_pointers("gradient_statistics", {{"x", args.x}, {"workspace", args.workspace}});
  check_results(args);
}

namespace {

std::vector<PartialSum> sorted(std::span<const PartialSum> sums) {
  std::vector<PartialSum> by_place(sums.begin(), sums.end());
  std::ranges::sort(by_place, std::less<>(), &PartialSum::to);
  return by_place;
}

/// What is to be known of a block.
struct Found {
  double sum = 0;
  std::int64_t first = -1;
  std::int64_t tiny = 0;
};

template <class T>
Found search(std::span<const T> block, float tiny) {
  Found found;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const auto value = static_cast<double>(block[i]);
    found.sum += value * value;
    found.tiny += std::abs(value) < double{tiny};
    if (found.first < 0 && !std::isfinite(value)) found.first = static_cast<std::int64_t>(i);
  }
  return found;
}

/// Pointers compare as integers, since they may belong to several arrays.
bool holds(const Run& run, const PartialSum& sum) {
  const auto offset = reinterpret_cast<std::uintptr_t>(sum.to) - reinterpret_cast<std::uintptr_t>(run.x);
  return offset % (kAlignment * sizeof(float)) == 0 && offset / sizeof(float) < run.elements &&
         static_cast<std::size_t>(sum.elements) <= run.elements - offset / sizeof(float);
}

}  // namespace

void check_args(const FinishArgs& args) {
  if (args.count) lib::check_pointers("gradient_statistics", {{"blocks", args.blocks}, {"notes", args.notes}});
  check_results(args);
  lib::check_pointer("gradient_statistics", "arrivals", args.arrivals);
  if (args.prepare.state) step_state::check_args(args.prepare);
  check(!args.prepare.sum_of_squares || args.prepare.sum_of_squares == args.sum,
        "gradient_statistics: sum_of_squares of prepare is not sum");
  for (const Run& run : args.runs) {
    if (run.elements == 0) continue;
    lib::check_pointer("gradient_statistics", "x of a run", run.x);
    check(run.first_block + block_count(run.elements) <= args.count,
          "gradient_statistics: a run has blocks beyond count");
  }
  const float* end = nullptr;
  for (const PartialSum& sum : sorted(args.partial_sums)) {
    if (sum.elements == 0) continue;
    lib::check_pointers("gradient_statistics", {{"to", sum.to}, {"slices", sum.slices}});
    check(std::ranges::any_of(args.runs, [&](const Run& run) { return holds(run, sum); }),
          "gradient_statistics: partial sums are not within a run, or not aligned to 32 elements");
    check(!end || !std::less<>()(sum.to, end), "gradient_statistics: partial sums overlap");
    end = sum.to + sum.elements;
  }
}

void reference_finish(const FinishArgs& args) {
  check_args(args);
  for (const PartialSum& sum : args.partial_sums)
    for (std::int64_t i = 0; i < sum.elements; ++i) {
      double all = 0;
      for (std::int64_t slice = 0; slice < sum.count; ++slice) all += sum.slices[slice * sum.stride + i];
      sum.to[i] = static_cast<float>(all);
    }
  for (const Run& run : args.runs)
    for (std::size_t begin = 0; begin < run.elements; begin += kBlock) {
      const std::size_t block = run.first_block + begin / kBlock;
      const Found found = search<float>({run.x + begin, std::min(kBlock, run.elements - begin)}, args.tiny);
      args.blocks[block] = found.first < 0 ? static_cast<float>(found.sum) : std::nanf("");
      args.notes[block] = static_cast<float>(found.first < 0 ? found.tiny : -1 - found.first);
    }
  double sum = 0;
  *args.first_non_finite = -1;
  *args.tiny_count = 0;
  for (std::size_t block = 0; block < args.count; ++block) {
    const auto note = static_cast<std::int64_t>(args.notes[block]);
    sum += args.blocks[block];
    if (note >= 0) *args.tiny_count += note;
    if (note < 0 && *args.first_non_finite < 0)
      *args.first_non_finite = static_cast<std::int64_t>(block * kBlock) - 1 - note;
  }
  *args.sum = static_cast<float>(sum);
  *args.non_finite = *args.first_non_finite >= 0;
  if (args.prepare.state) step_state::reference_prepare(args.prepare);
}

void reference_run(const Args& args) {
  check_args(args);
  double sum = 0;
  std::int64_t first = -1, tiny = 0;
  const std::vector<double> values = lib::read_values(args.dtype, args.x, args.elements);
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    const std::span<const double> block = std::span(values).subspan(begin);
    const Found found = search<double>(block.first(std::min(kBlock, block.size())), args.tiny);
    sum += found.sum;
    if (found.first < 0) tiny += found.tiny;
    if (first < 0 && found.first >= 0) first = static_cast<std::int64_t>(begin) + found.first;
  }
  *args.sum = static_cast<float>(sum);
  *args.non_finite = first >= 0;
  *args.first_non_finite = first;
  *args.tiny_count = tiny;
}

}  // namespace gradring::kernels::gradient_statistics
