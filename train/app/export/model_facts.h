// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "nn/models/model.h"
#include "train/core/setup/start.h"

namespace gradring::train {

/// What a user of exported weights must know besides them.
struct ModelFacts {
  nn::Model model;
  std::string dataset;
  std::vector<std::string> labels;   ///< of the logits, in order
  std::vector<float> mean, std;      ///< of each channel, of pixels in 0 .. 1
  std::optional<std::int64_t> step;  ///< of the checkpoint
};

/// The facts of a checkpoint, from its settings; `model` and `dataset` come before these if not empty. Nothing
/// if model or dataset is unknown: a file does not name them, and a newer gradring may have others.
///
/// Errors    UsageError if `model` or `dataset` does not exist; CheckpointError if the checkpoint's samples have
///           another shape than those of the dataset.
std::optional<ModelFacts> find_facts(const NamedTensors& named, const std::string& model, const std::string& dataset);

/// What an exported model takes.
enum class ModelInput : std::uint8_t {
  floats,  ///< normalized pixels, float32 [N, C, H, W]: weights for PyTorch
  bytes,   ///< raw pixels, uint8 [N, H, W, C]: a graph with its preprocessing
};

/// made_by, model, dataset, step, input_shape, input_layout, input_type, preprocessing, mean, std, labels.
nlohmann::ordered_json to_json(const ModelFacts& facts, ModelInput input);

/// The same for formats whose metadata is text: lists as JSON.
std::map<std::string, std::string> to_texts(const ModelFacts& facts, ModelInput input);

}  // namespace gradring::train
