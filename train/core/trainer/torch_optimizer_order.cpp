// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/torch_optimizer_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include "train/records/checkpoint/error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

using Order = std::vector<std::size_t>;  // indices of the model's parameters

Order model_order(std::size_t count) {
  Order order(count);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Order weights_first(std::span<const nn::Parameter> parameters) {
  Order order = model_order(parameters.size());
  std::ranges::stable_partition(order, [&](std::size_t i) { return !is_bias(parameters[i]); });
  return order;
}

Order biases_first(std::span<const nn::Parameter> parameters) {
  Order order = model_order(parameters.size());
  std::ranges::stable_partition(order, [&](std::size_t i) { return is_bias(parameters[i]); });
  return order;
}

void check_numbers(const std::vector<std::int64_t>& numbers, const TorchOptimizer& optimizer, std::size_t expected,
                   const fs::path& from) {
  if (numbers.size() != expected)
    refuse_optimizer(from, fmt::format("has {} parameters, but the model has {}", numbers.size(), expected));
  const std::set<std::int64_t> distinct(numbers.begin(), numbers.end());
  if (distinct.size() != numbers.size()) refuse_optimizer(from, "has a parameter in two groups");
  for (const auto& [number, tensors] : optimizer.state)
    if (!distinct.contains(number))
      refuse_optimizer(from, fmt::format("has a state of parameter {}, which is in no group", number));
}

/// The shape of the states of a parameter; nothing if it has none.
std::optional<std::vector<std::int64_t>> shape_in(const TorchOptimizer& optimizer, std::int64_t number) {
  const auto state = optimizer.state.find(number);
  if (state == optimizer.state.end()) return std::nullopt;
  for (const TensorRecord& tensor : state->second)
    if (tensor.name != kOptimizerStep) return tensor.shape;
  return std::nullopt;
}

bool has_shape(const nn::Parameter& parameter, std::span<const std::int64_t> shape) {
  return std::ranges::equal(parameter.torch_shape.extents(), shape);
}

/// Whether the states of the file have the shapes of `parameters` in this order.
bool fits(const TorchOptimizer& optimizer, const std::vector<std::int64_t>& numbers,
          std::span<const nn::Parameter> parameters, const Order& order) {
  for (std::size_t i = 0; i < order.size(); ++i)
    if (const auto shape = shape_in(optimizer, numbers[i]); shape && !has_shape(parameters[order[i]], *shape))
      return false;
  return true;
}

/// By the names of the parameters in the file.
Order order_of_names(const std::vector<std::string>& names, std::span<const nn::Parameter> parameters,
                     const fs::path& from) {
  Order order;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(parameters, name, &nn::Parameter::name);
    if (found == parameters.end())
      refuse_optimizer(from, fmt::format("has the parameter {}, which the model lacks", in_quotes(name)));
    order.push_back(static_cast<std::size_t>(found - parameters.begin()));
    if (std::ranges::count(order, order.back()) > 1)
      refuse_optimizer(from, fmt::format("has the parameter {} twice", in_quotes(name)));
  }
  return order;
}

/// By shapes that only one parameter has. Parameters without a state take the places that are left.
Order order_of_shapes(const TorchOptimizer& optimizer, const std::vector<std::int64_t>& numbers,
                      std::span<const nn::Parameter> parameters, const fs::path& from) {
  constexpr std::size_t kFree = std::numeric_limits<std::size_t>::max();
  Order order(parameters.size(), kFree), left = model_order(parameters.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto shape = shape_in(optimizer, numbers[i]);
    if (!shape) continue;
    const auto fitting = [&](const nn::Parameter& parameter) { return has_shape(parameter, *shape); };
    const auto found = std::ranges::find_if(parameters, fitting);
    const auto count = std::ranges::count_if(parameters, fitting);
    const auto index = static_cast<std::size_t>(found - parameters.begin());
    if (count == 0)
      refuse_optimizer(
          from, fmt::format("has a state of shape {} for parameter {}, and no parameter of the model has that shape",
                            shape_text(*shape), numbers[i]));
    if (count > 1)
      throw CheckpointError(from,
                            fmt::format("has its parameters in another order than the model, whose {} parameters of "
                                        "shape {} cannot be told apart",
                                        count, shape_text(*shape)),
                            "save it with their names: torch.optim.Adam(model.named_parameters())");
    if (std::erase(left, index) == 0)
      refuse_optimizer(from, fmt::format("has two states of shape {}, and one parameter of the model has that shape",
                                         shape_text(*shape)));
    order[i] = index;
  }
  for (std::size_t& index : order)
    if (index == kFree) {
      index = left.front();
      left.erase(left.begin());
    }
  return order;
}

/// The parameter of the model for each of `numbers`.
Order order_in(const TorchOptimizer& optimizer, const std::vector<std::int64_t>& numbers,
               std::span<const nn::Parameter> parameters, const fs::path& from) {
  std::vector<std::string> names;
  for (const TorchOptimizer::Group& group : optimizer.groups)
    names.insert(names.end(), group.names.begin(), group.names.end());
  if (names.size() == numbers.size()) return order_of_names(names, parameters, from);
  for (const Order& order : {model_order(parameters.size()), weights_first(parameters), biases_first(parameters)})
    if (fits(optimizer, numbers, parameters, order)) return order;
  return order_of_shapes(optimizer, numbers, parameters, from);
}

}  // namespace

bool is_bias(const nn::Parameter& parameter) { return parameter.torch_shape.rank() == 1; }

std::vector<std::int64_t> numbers_in(const TorchOptimizer& optimizer) {
  std::vector<std::int64_t> numbers;
  for (const TorchOptimizer::Group& group : optimizer.groups)
    numbers.insert(numbers.end(), group.parameters.begin(), group.parameters.end());
  return numbers;
}

std::vector<std::size_t> match_parameters(const TorchOptimizer& optimizer, std::span<const nn::Parameter> parameters,
                                          const fs::path& from) {
  const std::vector<std::int64_t> numbers = numbers_in(optimizer);
  check_numbers(numbers, optimizer, parameters.size(), from);
  return order_in(optimizer, numbers, parameters, from);
}

void refuse_optimizer(const fs::path& from, const std::string& found) {
  throw CheckpointError(from, found, "use the --model, --optimizer and frozen parameters (--group) that it belongs to");
}

}  // namespace gradring::train
