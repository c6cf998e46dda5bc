// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "nn/models/model.h"

namespace gradring::nn {

/// A model as text: TOML, which docs/models.md describes.
struct ModelText {
  std::string name;  ///< of a built-in model, or the path of the file; for messages, and its stem is the model's name
  std::string text;
};

/// The most layers of a model, with those of its blocks.
inline constexpr std::size_t kMostLayers = 4096;

/// The model for images of that shape, [height, width, channels].
///
/// Errors    InvalidArgument with file and line: no TOML, unknown or missing keys and kinds, invalid values, names that
///           no PyTorch module may have or that are used twice, shapes that do not fit (both are named), unused outputs,
///           too many layers, a last layer that does not give [n, classes].
/// Example   tests/nn/models/model_file_test.cpp
Model read_model(const ModelText& source, const Shape& sample, std::int64_t classes);

}  // namespace gradring::nn
