// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "nn/layers/parameter.h"
#include "train/core/ddp/parameter_groups.h"
#include "train/records/checkpoint/tensor_record.h"
#include "train/records/checkpoint/torch_optimizer.h"

namespace gradring::train {

/// The state of an optimizer between two steps, as a checkpoint holds it.
struct SteppedOptimizer {
  std::vector<TensorRecord> state;  ///< "exp_avg.conv_layers.0.weight", ...
  std::int32_t applied_steps = 0;
};

/// As torch.optim.Adam, AdamW or SGD (or timm's SGDW) saves it: the parameter groups in their order, each with its
/// parameters in PyTorch's order. `learning_rates` are those of the groups in the next step. Averaged weights (--ema) and
/// frozen parameters are left out.
///
/// Errors    CheckpointError with `from` unless `stepped` is the state of these groups and parameters, or if an optimizer
///           of PyTorch cannot have these groups together.
TorchOptimizer to_torch_optimizer(const SteppedOptimizer& stepped, const ParameterGroups& groups,
                                  std::span<const double> learning_rates, std::span<const nn::Parameter> parameters,
                                  const std::filesystem::path& from);

/// The inverse. Parameters are matched by their names, where the file has them (ParameterNames::rename makes them the
/// model's). Otherwise they may be in the model's order or, in any groups, weights before biases or biases before
/// weights: shapes tell. Any other order is found by the shapes, if no two parameters of the model have the same one. SGD
/// does not count its steps, which then count as one: momentum goes on. Frozen parameters may be in the file or not;
/// states of them are ignored.
///
/// Errors    CheckpointError with `from`: another number of parameters, a name or shape that the model lacks, an order
///           that shapes do not tell, a state that the optimizer lacks or that is missing, of another shape, or after
///           different numbers of steps; amsgrad or maximize.
SteppedOptimizer from_torch_optimizer(const TorchOptimizer& optimizer, const ParameterGroups& groups,
                                      std::span<const nn::Parameter> parameters, const std::filesystem::path& from);

/// The options of the file that no group of this run has: one text each, for a remark. `learning_rate` is the run's.
std::vector<std::string> optimizer_differences(const TorchOptimizer& optimizer, std::span<const ParameterGroup> groups,
                                               double learning_rate);

/// The state that counts the steps: a number, unlike the others.
inline constexpr const char* kOptimizerStep = "step";

bool is_bias(const nn::Parameter& parameter);

/// The parameter numbers of all groups, in order.
std::vector<std::int64_t> numbers_in(const TorchOptimizer& optimizer);

/// The index of the model's parameter for each of numbers_in(optimizer), by names where the file has them, else by the
/// shapes of the states: the model's order, weights or biases first, or any order if no two parameters have one shape.
///
/// Errors    CheckpointError with `from`, which says what differs.
std::vector<std::size_t> match_parameters(const TorchOptimizer& optimizer, std::span<const nn::Parameter> parameters,
                                          const std::filesystem::path& from);

/// Errors    always CheckpointError: `from` has `found`, so it belongs to another model or optimizer.
[[noreturn]] void refuse_optimizer(const std::filesystem::path& from, const std::string& found);

}  // namespace gradring::train
