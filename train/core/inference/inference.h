// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/datasets/dataset.h"
#include "data/loader/normalize.h"
#include "kernels/runtime/dtype.h"
#include "nn/models/model.h"
#include "nn/program/program.h"
#include "train/core/ddp/compute_weights.h"
#include "train/core/setup/compute.h"
#include "train/core/setup/rendezvous.h"
#include "train/core/trainer/evaluator.h"
#include "train/core/trainer/model_buffers.h"
#include "train/records/checkpoint/tensor_record.h"

namespace gradring::train {

/// Which model judges samples, and how.
struct InferenceSpec {
  nn::ModelText model = "convnet";
  kernels::Shape sample;  ///< height, width, channels
  std::int64_t classes = 0;
  std::int64_t batch_size = 64;  ///< at most, at once
  kernels::DType precision = kernels::DType::f32;
  data::NormalizeSpec normalize = {};
};

/// A trained model without what trained it: weights from a file, on one device.
///
/// Threads   one.
class Inference {
 public:
  struct Result {
    Evaluation evaluation;
    std::vector<float> logits;  ///< [samples, classes], in the data set's order
  };

  /// `weights` may have any spelling of their names (ParameterNames); `from` is where they were read, for messages.
  /// `compute` must outlive it.
  ///
  /// Errors    CheckpointError if they are those of another model; DivergedError if they are not finite;
  ///           InvalidArgument, DeviceError.
  Inference(const InferenceSpec& spec, std::vector<TensorRecord> weights, const std::filesystem::path& from,
            const Compute& compute);
  Inference(const Inference&) = delete;
  Inference& operator=(const Inference&) = delete;

  /// What was stripped from the names of the weights, for users.
  const std::vector<std::string>& remarks() const { return remarks_; }

  /// Judges every sample once, by the mean of the logits of its views.
  ///
  /// Errors    DivergedError if outputs are not finite; DeviceError.
  Result run(const data::Dataset& dataset, Tta tta = Tta::none);

 private:
  void load(std::vector<TensorRecord> weights);

  const std::filesystem::path from_;
  const data::NormalizeSpec normalize_;
  const Compute& compute_;
  Ranks self_;  // the world of one
  nn::Model model_;
  std::vector<nn::Parameter> parameters_;
  nn::ArenaLayout layout_;
  Shards shards_;  // one: the whole
  std::unique_ptr<kernels::Stream> stream_;
  ModelBuffers buffers_;
  GatheredWeights weights_;
  nn::Program program_;
  std::vector<std::string> remarks_;
};

/// exp(x_i) / sum_j exp(x_j) of one sample's logits.
std::vector<double> probabilities_of(std::span<const float> logits);

}  // namespace gradring::train
