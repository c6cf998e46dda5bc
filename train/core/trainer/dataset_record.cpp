// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/dataset_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/datasets/class_names.h"
#include "data/loader/normalize.h"
#include "train/core/config/normalize_option.h"
#include "train/core/trainer/training_state.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/json_members.h"

namespace gradring::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostExtent = 1 << 16;
constexpr std::size_t kMostClasses = 1 << 16;

/// The members of kDataset, which are lists.
class Lists {
 public:
  Lists(const Json& facts, const std::filesystem::path& from) : facts_(facts), from_(from) {}

  kernels::Shape shape() const {
    const auto is_extent = [](const Json& extent) {
      return extent.is_number_integer() && extent >= 1 && extent <= kMostExtent;
    };
    return kernels::Shape(list<std::int64_t>("shape", 3, 3, is_extent, "three numbers from 1 to 65536"));
  }
  std::vector<std::string> class_names() const {
    return list<std::string>(
        "class_names", 1, kMostClasses, [](const Json& name) { return name.is_string(); }, "the names of the classes");
  }
  std::vector<float> mean(std::size_t channels) const {
    return per_channel("mean", channels, [](float value) { return std::isfinite(value); });
  }
  std::vector<float> std(std::size_t channels) const {
    return per_channel("std", channels, [](float value) { return std::isfinite(value) && value > 0; });
  }

 private:
  template <class Value, class Predicate>
  std::vector<Value> list(const char* name, std::size_t least, std::size_t most, Predicate is_valid,
                          const char* expected) const {
    const auto found = facts_.find(name);
    if (found != facts_.end() && found->is_array() && found->size() >= least && found->size() <= most &&
        std::ranges::all_of(*found, is_valid))
      return found->get<std::vector<Value>>();
    const std::string text = found == facts_.end() ? "missing" : found->dump().substr(0, 40);
    throw CheckpointError(from_,
                          std::string("has '") + kDataset + "." + name + "' = " + text + ", expected " + expected,
                          kUseAnotherCheckpoint);
  }

  /// One value, or one for each channel.
  template <class Predicate>
  std::vector<float> per_channel(const char* name, std::size_t channels, Predicate is_valid) const {
    const auto fits = [&](const Json& value) { return value.is_number() && is_valid(value.get<float>()); };
    const bool is_one = facts_.contains(name) && facts_.at(name).size() == 1;
    return list<float>(name, is_one ? 1 : channels, channels, fits, "a number for each channel");
  }

  const Json& facts_;
  const std::filesystem::path& from_;
};

std::string class_text(std::span<const std::string> names, std::size_t i) {
  return i < names.size() ? names[i] : std::string("missing");
}

}  // namespace

DataHashes recorded_hashes(const Json& about, const std::filesystem::path& from) {
  return about.contains(kDataHashes) ? JsonMembers(about, from).texts(kDataHashes) : DataHashes();
}

bool differ(const DataHashes& saved, const DataHashes& here, const char* name) {
  const auto was = saved.find(name), is = here.find(name);
  return was != saved.end() && is != here.end() && was->second != is->second;
}

Json to_json(const data::DatasetFacts& facts) {
  return {{"name", facts.name},
          {"shape", to_json(facts.shape)},
          {"class_names", facts.class_names},
          {"mean", facts.mean},
          {"std", facts.std}};
}

std::optional<data::DatasetFacts> recorded_dataset(const Json& about, const std::filesystem::path& from) {
  if (!about.contains(kDataset)) return std::nullopt;
  const JsonMembers members(about, from);
  const Json& facts = members.object(kDataset);
  const Lists lists(facts, from);
  const kernels::Shape shape = lists.shape();
  const auto channels = static_cast<std::size_t>(shape[2]);
  return data::DatasetFacts{.name = JsonMembers(facts, from).text("name"),
                            .shape = shape,
                            .class_names = lists.class_names(),
                            .mean = lists.mean(channels),
                            .std = lists.std(channels)};
}

void check_classes(const data::DatasetFacts& trained, std::span<const std::string> here, std::string_view name,
                   const std::filesystem::path& from) {
  if (trained.name != name || std::ranges::equal(trained.class_names, here)) return;
  std::size_t i = 0;
  while (class_text(trained.class_names, i) == class_text(here, i)) ++i;
  throw CheckpointError(
      from,
      fmt::format("was trained on {} classes, of which class {} is {}, but the data here has {} "
                  "classes, of which it is {}",
                  trained.classes(), i, class_text(trained.class_names, i), here.size(), class_text(here, i)) +
          data::unicode_hint(class_text(trained.class_names, i), here),
      "use data with the same classes, or train again, from these weights with --weights");
}

void check_dataset(const data::DatasetFacts& saved, const data::DatasetFacts& here, bool advises,
                   const std::filesystem::path& from) {
  check_classes(saved, here.class_names, here.name, from);
  const std::int64_t channels = here.shape[2];
  const auto equal = [channels](const std::vector<float>& a, const std::vector<float>& b) {
    return data::for_channels(a, channels) == data::for_channels(b, channels);
  };
  if (equal(saved.mean, here.mean) && equal(saved.std, here.std)) return;
  const auto text = [](const data::DatasetFacts& facts) {
    return show_normalize({.kind = NormalizeOption::Kind::values, .mean = facts.mean, .std = facts.std});
  };
  throw UsageError(fmt::format(
      "{} was trained with pixels normalized by mean and deviation {}, but this run has {}: resume with {}, "
      "or start a new run from its weights with --weights",
      from.string(), text(saved), text(here),
      advises ? "--normalize " + text(saved) : fmt::format("its --normalize, and with {}", kUseItsFiles)));
}

}  // namespace gradring::train
