// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/stopwatch.h"

#include "kernels/runtime/cuda/cuda_error.h"

namespace gradring::kernels {

Stopwatch::Stopwatch(int index) : index_(index), start_(make_mark()), stop_(make_mark()) {}

Stopwatch::Mark Stopwatch::make_mark() const {
  make_current(index_);
  cudaEvent_t event = nullptr;
  cuda_check(cudaEventCreate(&event), "cudaEventCreate");
  return Mark(event);
}

void Stopwatch::record(const Mark& mark, Stream& stream) {
  make_current(index_);
  cuda_check(cudaEventRecord(mark.get(), static_cast<cudaStream_t>(stream.native_handle())), "cudaEventRecord");
}

double Stopwatch::seconds() const {
  constexpr double kMillisecond = 1e-3;
  float milliseconds = 0;
  cuda_check(cudaEventElapsedTime(&milliseconds, start_.get(), stop_.get()), "cudaEventElapsedTime");
  return milliseconds * kMillisecond;
}

}  // namespace gradring::kernels
