// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/models/model.h"
#include "train/checkpoint/tensor_record.h"

namespace gradring::train {

/// What others call the parameters of a model. Known spellings, each with .weight and .bias behind it:
///
///   conv_layers.0   fc_layers.0     the model's own
///   conv1           fc1             attributes: the first convolution, the first linear layer, ...
///   0               7               torch.nn.Sequential: the layer's place among all layers
///
/// each also behind "module." (DistributedDataParallel, DataParallel) or "_orig_mod." (torch.compile), or both.
class ParameterNames {
 public:
  explicit ParameterNames(const nn::Model& model);

  /// The model's own name; empty if `name` is no spelling of one.
  std::optional<std::string> own(std::string_view name) const;

  /// Renames the tensors of a file; those of unknown names keep them.
  ///
  /// Errors    CheckpointError with `path` if two of them are the same parameter.
  void rename(std::vector<TensorRecord>& tensors, const std::filesystem::path& path) const;

 private:
  std::map<std::string, std::string, std::less<>> own_;
};

}  // namespace gradring::train
