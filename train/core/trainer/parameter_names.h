// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nn/models/model.h"
#include "train/records/checkpoint/tensor_record.h"
#include "train/records/checkpoint/torch_optimizer.h"

namespace gradring::train {

/// Maps the names that other programs give to the parameters and buffers of a model to the model's own. Known
/// spellings, each followed by .weight or another tensor's name; the first that fits counts:
///
///   conv_layers.0   fc_layers.0     the model's own
///   conv1           fc1             attributes: the first convolution, the first linear layer, ...
///   0               7               torch.nn.Sequential: the index of the layer among all layers
///
/// The components that PyTorch's wrappers insert are skipped wherever they are: "module" (DistributedDataParallel,
/// DataParallel, AveragedModel), "_orig_mod" (torch.compile), and those of FSDP and of activation checkpointing. So is a
/// prefix that all names of a file have in common ("model.", "net.", "ema.model."), if every name is known without it.
class ParameterNames {
 public:
  explicit ParameterNames(const nn::Model& model);

  /// The model's own name for `name` without the components of wrappers and `prefix`; empty if it is unknown.
  std::optional<std::string> own(std::string_view name, std::string_view prefix = {}) const;

  /// Renames the tensors of a file; unknown names stay. Removes the counters of AveragedModel and BatchNorm.
  ///
  /// Returns   what was stripped from names and what was removed, one text each, for remarks.
  /// Errors    CheckpointError with `path` if two of them are the same parameter.
  std::vector<std::string> rename(std::vector<TensorRecord>& tensors, const std::filesystem::path& path) const;

  /// Renames the parameters of an optimizer; unknown names stay.
  void rename(TorchOptimizer& optimizer) const;

 private:
  /// The shortest prefix, after wrappers' components are removed, without which all `names` are known; empty if no prefix
  /// is needed, or none suffices.
  std::string common_prefix(std::span<const std::string> names) const;
  bool is_known(std::string_view name, std::string_view prefix) const;

  std::map<std::string, std::string, std::less<>> own_;
};

}  // namespace gradring::train
