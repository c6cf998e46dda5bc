// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/datasets/image_settings.h"
#include "nn/models/model.h"
#include "train/core/setup/start.h"
#include "train/records/checkpoint/tensor_record.h"
#include "train/records/metrics/run_history.h"

namespace gradring::train {

/// What a user of exported weights must know besides them.
struct ModelFacts {
  nn::Model model;
  std::string dataset;
  std::vector<std::string> labels;            ///< of the logits, in order
  std::vector<float> mean, std;               ///< of each channel, of pixels in 0 .. 1
  std::optional<data::ImageSettings> images;  ///< how image files became the samples; nothing without such files
  std::optional<std::int64_t> step;           ///< of the checkpoint
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

/// made_by, model, dataset, step, input_shape, input_layout, input_type, preprocessing, mean, std, labels; for a model of
/// an image folder also resize, interpolation, center_crop and color.
nlohmann::ordered_json to_json(const ModelFacts& facts, ModelInput input);

/// The same for formats whose metadata is text: lists as JSON.
std::map<std::string, std::string> to_texts(const ModelFacts& facts, ModelInput input);

/// A model as an ONNX file, opset 17: raw images in, logits out, with any number of images.
///
///   images uint8 [N, H, W, C] -> Cast, Div 255, Sub mean, Div std, Transpose -> one node per layer
///   -> logits f32 [N, classes]
///
/// Layers keep their names, and weights PyTorch's names and order. metadata_props has the texts of `facts`.
///
/// Errors    CheckpointError with `from` if `weights` are those of another model.
/// Numerics  the graph computes what data::Normalize and the layers compute, in f32.
/// Source    the ONNX specification: onnx.proto (IR version 8), operators of opset 17.
/// Example   tests/train/app/commands/onnx_test.cpp
std::string onnx_model(const ModelFacts& facts, std::span<const TensorRecord> weights,
                       const std::filesystem::path& from);

/// What a model card is made of.
struct CardContents {
  const ModelFacts& facts;
  const NamedTensors& named;          ///< the checkpoint or file
  bool averaged = false;              ///< its averaged weights (--ema)
  std::optional<RunHistory> history;  ///< of the run that saved it, if its metrics.jsonl is there
  std::string file;                   ///< what was exported; empty: nothing
  std::string file_sha256;
};

/// Describes an exported model in Markdown: layers, input and preprocessing, labels, data, metrics with the split that
/// they were measured on, the training command, limits, hashes. What is unknown is said to be unknown; the licence is
/// left to whoever publishes the model.
std::string model_card(const CardContents& contents);

}  // namespace gradring::train
