// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cuda/measure.h"

#include <algorithm>
#include <limits>

#include "kernels/runtime/cuda/stopwatch.h"

namespace gradring::nn {
namespace {

constexpr int kRuns = 5;
constexpr auto kPatience = std::chrono::seconds(30);

}  // namespace

double measure(int index, kernels::Stream& stream, const std::function<void()>& enqueue_work) {
  kernels::Stopwatch watch(index);
  enqueue_work();
  double least = std::numeric_limits<double>::infinity();
  for (int run = 0; run < kRuns; ++run) {
    watch.start(stream);
    enqueue_work();
    watch.stop(stream);
    stream.synchronize(Deadline::after(kPatience));
    least = std::min(least, watch.seconds());
  }
  return least;
}

}  // namespace gradring::nn
