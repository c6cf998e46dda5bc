// SPDX-License-Identifier: Apache-2.0
// Idea: an evaluation asks for a few sums over the whole data set. They stay on the device, and each batch adds to them,
//   so that no logit is copied to the host and the host waits once, at the end.
// Mapping: each thread handles one row, in one pass: largest logit, NaN, and how many logits come before the label's;
//   then atomic additions of whole numbers, whose sum does not depend on their order. One thread adds the loss.
// Traffic and bound: reads the logits once; bound by the launch for ten classes.
// Still slow because: for many classes the rows of a warp do not coalesce: a warp per row would.
// Limits: fewer than 2^31 classes.

#include "kernels/lib/element.h"
#include "kernels/ops/tally/tally.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::tally {
inline namespace GRADRING_KERNEL_COPY {
namespace {

using Count = unsigned long long;  // what atomicAdd has; whole numbers add up alike with and without a sign

template <class T>
__global__ void tally_rows_kernel(const T* __restrict__ logits, const std::int32_t* __restrict__ labels,
                                  const float* __restrict__ loss, std::size_t rows, int classes,
                                  double* __restrict__ loss_sum, Count* __restrict__ counts) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *loss_sum += static_cast<double>(*loss);
  Count* const of_class = counts + 1;
  for (std::size_t row : simt::grid_range(rows)) {
    const int label = labels[row];
    if (label < 0 || label >= classes) continue;
    const T* x = logits + row * static_cast<std::size_t>(classes);
    const float own = lib::to_f32(x[label]);
    float largest = lib::to_f32(x[0]);
    int predicted = 0;
    int before = 0;  // classes that come before the label in the order of falling logits
    bool is_nan = false;
    for (int c = 0; c < classes; ++c) {
      const float logit = lib::to_f32(x[c]);
      is_nan = is_nan || logit != logit;
      predicted = logit > largest ? c : predicted;
      largest = logit > largest ? logit : largest;
      before += logit > own || (logit == own && c < label) ? 1 : 0;
    }
    atomicAdd(of_class + 3 * std::int64_t{label}, Count{1});
    if (is_nan) continue;
    atomicAdd(of_class + 3 * std::int64_t{predicted} + 1, Count{1});
    if (predicted == label) atomicAdd(of_class + 3 * std::int64_t{label} + 2, Count{1});
    if (before < kTop) atomicAdd(counts, Count{1});
  }
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  if (args.rows == 0) return;
  const auto rows = static_cast<std::size_t>(args.rows);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<tally_rows_kernel<T>>(
        stream, simt::grid_for(stream, rows), static_cast<const T*>(args.logits), args.labels, args.loss, rows,
        lib::narrow<int>("tally", "classes", args.classes), args.loss_sum, reinterpret_cast<Count*>(args.counts));
  });
}

}  // namespace

Variant row_per_thread() { return {"row_per_thread", run, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::tally
