// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/torch_optimizer.h"

#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/pt_archive.h"

namespace gradring::train {
namespace {

using Kind = PickleValue::Kind;
using Value = TorchOptimizer::Value;

constexpr const char* kOptimizerAdvice = "save the optimizer's state_dict: torch.save(optimizer.state_dict(), ...)";
constexpr std::string_view kOptimizerWrappers[] = {"optimizer_state_dict", "optimizer", "optim", "optimizer_states"};
constexpr const char* kState = "state";
constexpr const char* kGroups = "param_groups";
constexpr const char* kParameters = "params";
constexpr const char* kNames = "param_names";

template <class Number>
std::string text_of(Number number) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr};
}

/// 0.001 for the float nearest to it: the number that was meant.
double meant_by(float number) {
  const std::string text = text_of(number);
  double meant = 0;
  std::from_chars(text.data(), text.data() + text.size(), meant);
  return meant;
}

/// Combines the values of a pickle into an optimizer's state.
class OptimizerReader {
 public:
  OptimizerReader(const InputFile& file, const std::filesystem::path& path) : archive_(file, path, kOptimizerAdvice) {}

  TorchOptimizer read() {
    const PickleValue& root = archive_.dictionary(kOptimizerWrappers);
    const PickleValue* const state = archive_.find(root, kState);
    const PickleValue* const groups = archive_.find(root, kGroups);
    if (!state || !groups || state->kind != Kind::dictionary || groups->kind != Kind::list)
      archive_.refuse("does not hold the 'state' and 'param_groups' of an optimizer");
    TorchOptimizer optimizer;
    for (const PickleId id : groups->items) optimizer.groups.push_back(group(archive_.at(id)));
    for (std::size_t i = 0; i < state->items.size(); i += 2) {
      const std::int64_t number = parameter(archive_.at(state->items[i]));
      if (!optimizer.state.emplace(number, tensors(number, archive_.at(state->items[i + 1]))).second)
        archive_.refuse("has the state of parameter " + std::to_string(number) + " twice");
    }
    return optimizer;
  }

 private:
  /// Called for each thing that is copied out of the pickle, which can refer to one of them many times.
  void spend(std::size_t bytes) {
    constexpr std::size_t kMost = 64u << 20, kOverhead = 64;
    spent_ += bytes + kOverhead;
    if (spent_ > kMost) archive_.refuse("has parameters and options of more than 64 MiB");
  }

  /// The number of a parameter. One that is named instead gets the next number when its name is first seen.
  std::int64_t parameter(const PickleValue& value) {
    constexpr std::int64_t kMost = 1'000'000;
    if (value.kind == Kind::text) {
      const auto next = static_cast<std::int64_t>(numbers_.size());
      return numbers_.try_emplace(value.text, next).first->second;
    }
    if (value.kind != Kind::integer || value.number < 0 || value.number >= kMost)
      archive_.refuse("has a parameter whose number is not one of 0 to 999,999");
    return value.number;
  }

  TorchOptimizer::Group group(const PickleValue& from) {
    spend(sizeof(TorchOptimizer::Group));
    TorchOptimizer::Group group;
    const PickleValue* const parameters = from.kind == Kind::dictionary ? archive_.find(from, kParameters) : nullptr;
    if (!parameters || parameters->kind != Kind::list) archive_.refuse("has a param_group without a list 'params'");
    for (const PickleId id : parameters->items) {
      spend(sizeof(std::int64_t));
      group.parameters.push_back(parameter(archive_.at(id)));
    }
    const PickleValue* const named = archive_.find(from, kNames);
    group.names = names_in(named && named->kind == Kind::list ? *named : *parameters);
    std::set<std::string_view> known;
    for (std::size_t i = 0; i < from.items.size(); i += 2) {
      const std::string& name = archive_.text(from.items[i], "an option of a param_group");
      spend(name.size());
      if (!known.insert(name).second) archive_.refuse("has the option " + in_quotes(name) + " twice");
      if (name == kParameters || name == kNames) continue;
      if (auto value = option(name, from.items[i + 1])) group.options.emplace_back(name, std::move(*value));
    }
    return group;
  }

  /// The names in a list; none if it holds anything else.
  std::vector<std::string> names_in(const PickleValue& list) {
    std::vector<std::string> names;
    for (const PickleId id : list.items) {
      if (archive_.at(id).kind != Kind::text) return {};
      spend(archive_.at(id).text.size());
      names.push_back(archive_.at(id).text);
    }
    return names;
  }

  /// Nothing for a kind of value that no option of torch.optim has.
  std::optional<Value> option(const std::string& name, PickleId id) {
    const PickleValue& value = archive_.at(id);
    switch (value.kind) {
      case Kind::none: return Value();
      case Kind::boolean: return value.number != 0;
      case Kind::integer: return value.number;
      case Kind::tuple:
      case Kind::list: return numbers(name, value);
      default: break;
    }
    const auto number = number_in(name, id);
    return number ? std::optional<Value>(*number) : std::nullopt;
  }

  /// A number, or the element of a tensor of one.
  std::optional<double> number_in(const std::string& name, PickleId id) {
    const PickleValue& value = archive_.at(id);
    if (value.kind == Kind::real) return value.real;
    if (value.kind == Kind::integer) return static_cast<double>(value.number);
    if (!archive_.is_tensor(value)) return std::nullopt;
    const TensorRecord tensor = archive_.tensor(name, id);
    const auto values = values_of(tensor);
    if (!values || values->size() != 1) return std::nullopt;
    return tensor.type == TensorType::f32 ? meant_by(static_cast<float>(values->front())) : values->front();
  }

  std::optional<Value> numbers(const std::string& name, const PickleValue& list) {
    constexpr std::size_t kMost = 16;
    std::vector<double> found;
    for (const PickleId id : list.items) {
      const auto number = found.size() < kMost ? number_in(name, id) : std::nullopt;
      if (!number) return std::nullopt;
      found.push_back(*number);
    }
    return found;
  }

  std::vector<TensorRecord> tensors(std::int64_t number, const PickleValue& from) {
    if (from.kind != Kind::dictionary)
      archive_.refuse("has a state of parameter " + std::to_string(number) + " that is not a dictionary");
    std::vector<TensorRecord> found;
    std::set<std::string_view> names;
    for (std::size_t i = 0; i < from.items.size(); i += 2) {
      const std::string& name = archive_.text(from.items[i], "a state");
      spend(name.size());
      if (!names.insert(name).second) archive_.refuse("has the state " + in_quotes(name) + " twice");
      const PickleValue& value = archive_.at(from.items[i + 1]);
      if (value.kind == Kind::none) continue;
      if (value.kind == Kind::real || value.kind == Kind::integer)
        found.push_back(scalar(name, value.kind == Kind::real ? value.real : static_cast<double>(value.number)));
      else if (archive_.is_tensor(value))
        found.push_back(archive_.tensor(name, from.items[i + 1]));
      else
        archive_.refuse("has the state " + in_quotes(name) + ", which is neither a tensor nor a number");
    }
    return found;
  }

  static TensorRecord scalar(const std::string& name, double number) {
    const auto bytes = std::as_bytes(std::span(&number, 1));
    return {{name, TensorType::f64, {}}, {bytes.begin(), bytes.end()}};
  }

  PtArchive archive_;
  std::size_t spent_ = 0;
  std::map<std::string, std::int64_t> numbers_;  // of parameters that are named in place of them
};

void write_value(PickleWriter& pickle, const Value& value) {
  if (const auto* truth = std::get_if<bool>(&value)) return pickle.boolean(*truth);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return pickle.integer(*integer);
  if (const auto* real = std::get_if<double>(&value)) return pickle.real(*real);
  if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
    pickle.mark();
    for (const double number : *numbers) pickle.real(number);
    return pickle.end_tuple();
  }
  pickle.none();
}

void write_group(PickleWriter& pickle, const TorchOptimizer::Group& group) {
  pickle.empty_dict();
  pickle.mark();
  for (const auto& [name, value] : group.options) {
    pickle.text(name);
    write_value(pickle, value);
  }
  pickle.text(kParameters);
  pickle.empty_list();
  pickle.mark();
  for (const std::int64_t number : group.parameters) pickle.integer(number);
  pickle.end_appends();
  if (!group.names.empty()) {
    pickle.text(kNames);
    pickle.empty_list();
    pickle.mark();
    for (const std::string& name : group.names) pickle.text(name);
    pickle.end_appends();
  }
  pickle.end_items();
}

}  // namespace

std::string to_string(const TorchOptimizer::Value& value) {
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "True" : "False";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value)) return text_of(*real);
  const auto* numbers = std::get_if<std::vector<double>>(&value);
  if (!numbers) return "None";
  std::string text = "(";
  for (const double number : *numbers) text += (text.size() > 1 ? ", " : "") + text_of(number);
  return text + ")";
}

void write_torch_optimizer(FileSystem& files, const std::filesystem::path& path, const TorchOptimizer& optimizer,
                           std::string_view about) {
  PickleWriter pickle;
  std::vector<const TensorRecord*> storages;
  pickle.empty_dict();
  pickle.mark();
  pickle.text(kState);
  pickle.empty_dict();
  pickle.mark();
  for (const auto& [number, tensors] : optimizer.state) {
    pickle.integer(number);
    pickle.empty_dict();
    pickle.mark();
    write_tensors(pickle, tensors, storages);
    pickle.end_items();
  }
  pickle.end_items();
  pickle.text(kGroups);
  pickle.empty_list();
  pickle.mark();
  for (const TorchOptimizer::Group& group : optimizer.groups) write_group(pickle, group);
  pickle.end_appends();
  pickle.end_items();
  write_pt_archive(files, path, pickle.finish(), storages, about);
}

TorchOptimizer read_torch_optimizer(FileSystem& files, const std::filesystem::path& path) {
  const auto file = open_to_read(files, path);
  return OptimizerReader(*file, path).read();
}

}  // namespace gradring::train
