// SPDX-License-Identifier: Apache-2.0
// Idea: loss and gradient share the row's maximum and its sum of exponentials; with them at hand, both cost one more
//   pass over a row that is still in the cache.
// Mapping: a thread per row, three passes over it; then one warp adds up the rows' losses and verdicts, always in
//   the same order.
// Traffic and bound: reads and writes the logits once from memory; bound by the two launches for ten classes.
// Still slow because: for many classes a thread's pass over its row does not coalesce: a warp per row would.
// Limits: the rows' losses are added up in float by one block; rows < 2^32.

#include "kernels/ops/cross_entropy/cross_entropy.h"

#include <limits>

#include "kernels/lib/element.h"
#include "kernels/lib/rows.h"
#include "kernels/ops/cross_entropy/targets.cuh"
#include "kernels/simt/simt.h"

namespace gradring::kernels::softmax_cross_entropy {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kTotalThreads = 32;  // one warp: batches have some hundred rows, and every thread has its price on a CPU
constexpr std::size_t kWorkPerClass = 16;  // an exponential or two and a division, counted in elements of grid_for
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

template <class T, bool kSoft>
__global__ void softmax_cross_entropy_row_kernel(const T* logits, const std::int32_t* __restrict__ labels,
                                                 SoftTargets soft, T* dlogits, std::size_t rows, int classes,
                                                 float scale, const float* __restrict__ loss_scale,
                                                 float* __restrict__ losses, std::int32_t* __restrict__ verdicts) {
  const float gradient_scale = loss_scale ? scale * *loss_scale : scale;
  for (std::size_t row : simt::grid_range(rows)) {
    const T* x = logits + row * static_cast<std::size_t>(classes);
    const Target<kSoft> target(labels, soft, row, classes);
    float largest = lib::to_f32(x[0]);
    int where = 0;
    for (int c = 1; c < classes; ++c) {
      const float value = lib::to_f32(x[c]);
      where = value > largest ? c : where;
      largest = value > largest ? value : largest;
    }
    const bool valid = target.valid(classes);
    const float to_target = valid ? target.distance(x, classes, largest) : kNaN;  // now: dlogits may be logits
    // f32 holds an exponential until the sum is known; in a shorter type it would be rounded, so it is taken twice.
    T* dx = dlogits ? dlogits + row * static_cast<std::size_t>(classes) : nullptr;
    const bool keep = sizeof(T) == sizeof(float) && dx;
    float sum = 0;  // NaN if there is a NaN in the row
    for (int c = 0; c < classes; ++c) {
      const float e = expf(lib::to_f32(x[c]) - largest);
      if (keep) dx[c] = lib::from_f32<T>(e);
      sum += e;
    }
    const float loss = logf(sum) + to_target;
    losses[row] = loss;
    verdicts[row] = where == target.prediction() && loss == loss;
    if (!dx) continue;
    const float factor = valid ? gradient_scale : kNaN;
    for (int c = 0; c < classes; ++c) {
      const float p = (keep ? lib::to_f32(dx[c]) : expf(lib::to_f32(x[c]) - largest)) / sum;
      dx[c] = lib::from_f32<T>(target.gradient(c, p) * factor);
    }
  }
}

/// One warp: adds up the rows' losses and verdicts.
__global__ void softmax_cross_entropy_total_kernel(const float* __restrict__ losses,
                                                   const std::int32_t* __restrict__ verdicts, unsigned rows,
                                                   float* loss_sum, std::int32_t* correct) {
  float loss[1] = {};
  int right[1] = {};
  for (unsigned row : simt::block_range(0, rows)) {
    loss[0] += losses[row];
    right[0] += verdicts[row];
  }
  lib::block_sum<kTotalThreads>(loss, [=](int, float sum) { *loss_sum = sum; });
  lib::block_sum<kTotalThreads>(right, [=](int, int sum) { *correct = sum; });
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  float* losses = static_cast<float*>(args.workspace);
  std::int32_t* verdicts = reinterpret_cast<std::int32_t*>(losses + args.rows);
  const auto rows = static_cast<std::size_t>(args.rows);
  const auto work = static_cast<std::size_t>(args.rows * args.classes) * kWorkPerClass;
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    lib::with_bool(args.soft.used(), [&](auto soft) {
      simt::launch_flat<softmax_cross_entropy_row_kernel<T, soft.value>>(
          stream, simt::grid_for(stream, rows == 0 ? 0 : work), static_cast<const T*>(args.logits), args.labels,
          args.soft, static_cast<T*>(args.dlogits), rows,
          lib::narrow<int>("softmax_cross_entropy", "classes", args.classes), args.scale, args.loss_scale, losses,
          verdicts);
    });
  });
  const simt::Config total{.grid = dim3(1), .block = dim3(kTotalThreads)};
  simt::launch<softmax_cross_entropy_total_kernel>(stream, total, losses, verdicts,
                                                   lib::narrow<unsigned>("softmax_cross_entropy", "rows", args.rows),
                                                   args.loss_sum, args.correct);
}

}  // namespace

Variant row_per_thread() { return {"row_per_thread", run, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::softmax_cross_entropy
