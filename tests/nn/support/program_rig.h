// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/host/host_device.h"
#include "kernels/runtime/device.h"
#include "nn/backend/backend.h"
#include "nn/program/program.h"

namespace gradring::tests {

std::unique_ptr<nn::Backend> make_backend(const std::string& name, const kernels::Device& device);

/// The logits of a program's last forward on a CPU, widened to f32.
std::vector<float> logits_of(const nn::Program& program, std::int64_t elements);

/// A model with shortcuts: outputs with two and three readers, one from the images, one from before a ReLU, and an output
/// that is added to itself. tests/golden/make_residual.py has it in PyTorch.
nn::Model residual_model();

/// A residual network: batch normalization alone, with a ReLU, and with a shortcut and a ReLU.
/// tests/golden/make_batch_norm_network.py has it in PyTorch.
nn::Model batch_norm_model();

/// A network with dropout of images and of flattened images, beside a shortcut.
/// tests/golden/make_dropout_network.py has it in PyTorch.
nn::Model dropout_model();

/// What a program runs on.
struct RigDevice {
  std::unique_ptr<kernels::Device> device;
  std::unique_ptr<nn::Backend> backend;
};

/// The CPU, with a backend of make_backend.
RigDevice on_host(const std::string& backend);

/// A model with weights and gradients, and a program over it: what one forward and backward pass needs.
class ProgramRig {
 public:
  /// Partial sums (nn::Program) only on the host.
  ProgramRig(const nn::Model& model, std::int64_t max_batch, RigDevice on,
             nn::ProgramMode mode = nn::ProgramMode::training, kernels::DType dtype = kernels::DType::f32,
             const nn::Checkpointing& checkpointing = {}, std::size_t most_partial_sum_bytes = 0);
  /// on_host(backend).
  ProgramRig(const nn::Model& model, std::int64_t max_batch, const std::string& backend,
             nn::ProgramMode mode = nn::ProgramMode::training, kernels::DType dtype = kernels::DType::f32,
             const nn::Checkpointing& checkpointing = {});

  /// Draws the weights as PyTorch does.
  void draw_weights(std::uint64_t seed);

  struct Result {
    std::vector<float> logits;
    double loss = 0;  ///< mean
    std::int32_t correct = 0;
  };
  /// Forward and loss, of images and weights rounded to the program's type; in training mode backward too, for the
  /// gradients of the mean loss.
  Result run(const std::vector<float>& images, const std::vector<std::int32_t>& labels,
             nn::StepObserver* observer = nullptr);
  /// What the next runs draw random numbers by; `step` is copied to the device.
  void set_random(const nn::RandomKey& random, std::int32_t step);

  /// The second labels of the next runs, with their weights, and label smoothing (LossPass); without any: hard labels.
  struct Soft {
    std::vector<std::int32_t> labels_b;
    std::vector<float> weights_b;
    float label_smoothing = 0;
  };
  void set_soft(const Soft& soft) { soft_ = soft; }
  /// Images of the next runs stay f32 (nn::Program::reads_f32).
  void keep_f32() { keeps_f32_ = true; }

  /// A pass over no samples, in training mode.
  void run_nothing(nn::StepObserver& observer);

  /// The gradient of one parameter that is not frozen, in PyTorch's order.
  std::vector<float> gradient(std::size_t parameter) const;

  /// The model's buffers, which begin with their initial values.
  std::vector<std::vector<float>> buffers() const;
  void set_buffers(const std::vector<std::vector<float>>& values);

  const std::vector<nn::Parameter>& parameters() const { return parameters_; }
  const nn::Program& program() const { return program_; }
  /// How many gradients the last run has left as partial sums, and then added up.
  std::size_t partial_sums() const { return partial_sums_.size(); }

 private:
  /// Enqueues a copy to the device, which is there after the next wait.
  kernels::Buffer on_device(const void* data, std::size_t bytes);
  /// Waits for it.
  void copy_to_host(void* data, const void* from, std::size_t bytes) const;
  nn::Gradients gradients() const { return nn::gradients_in({layout_, gradients_.as<float>()}); }

  nn::Model model_;
  std::vector<nn::Parameter> parameters_;
  nn::ArenaLayout layout_;
  RigDevice on_;
  std::unique_ptr<kernels::Stream> stream_;
  std::vector<float> weights_;
  kernels::Buffer gradients_;
  nn::ArenaLayout buffer_layout_;
  kernels::Buffer buffers_;
  nn::ProgramMode mode_;
  nn::RandomKey random_;
  Soft soft_;
  bool keeps_f32_ = false;
  kernels::Buffer step_;
  kernels::PartialSums partial_sums_;
  nn::Program program_;
};

/// |a - b| / |b| in the Euclidean norm.
double relative_error(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace gradring::tests
