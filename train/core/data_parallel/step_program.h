// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/runtime/stream.h"
#include "nn/program/program.h"

namespace gradring::train {

/// Forward and backward of a pass as TrainStep drives them, on one device or on several. All pointers are to memory of
/// the first device, and all work is ordered by the stream of the calls, which is the first device's. The members mean
/// what those of nn::Program do.
///
/// Threads   one thread at a time.
class StepProgram {
 public:
  virtual ~StepProgram() = default;
  virtual void enqueue_forward(kernels::Stream& stream, const nn::Weights& weights, const void* x, std::int64_t batch,
                               nn::StepObserver& observer) = 0;
  virtual void enqueue_backward(kernels::Stream& stream, const nn::Weights& weights, const nn::Gradients& gradients,
                                const nn::Program::LossTarget& target, nn::StepObserver& observer) = 0;
  virtual void enqueue_empty_batch(kernels::Stream& stream, const nn::Gradients& gradients,
                                   nn::StepObserver& observer) = 0;
};

/// The program of one device, which must outlive this.
class SingleDevice final : public StepProgram {
 public:
  explicit SingleDevice(nn::Program& program) : program_(program) {}

  void enqueue_forward(kernels::Stream& stream, const nn::Weights& weights, const void* x, std::int64_t batch,
                       nn::StepObserver& observer) override {
    program_.enqueue_forward(stream, weights, x, batch, observer);
  }
  void enqueue_backward(kernels::Stream& stream, const nn::Weights& weights, const nn::Gradients& gradients,
                        const nn::Program::LossTarget& target, nn::StepObserver& observer) override {
    program_.enqueue_backward(stream, weights, gradients, target, observer);
  }
  void enqueue_empty_batch(kernels::Stream& stream, const nn::Gradients& gradients,
                           nn::StepObserver& observer) override {
    program_.enqueue_empty_batch(stream, gradients, observer);
  }

 private:
  nn::Program& program_;
};

}  // namespace gradring::train
