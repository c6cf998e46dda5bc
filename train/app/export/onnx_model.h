// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "train/app/export/model_facts.h"
#include "train/records/checkpoint/tensor_record.h"

namespace gradring::train {

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

}  // namespace gradring::train
