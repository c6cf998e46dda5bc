// SPDX-License-Identifier: Apache-2.0
#include "train/app/api/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>

#include "data/datasets/class_names.h"
#include "data/files/byte_source.h"
#include "kernels/base/error.h"
#include "train/app/api/api_call.h"
#include "train/core/config/option_sources.h"
#include "train/core/config/resolve.h"
#include "train/options/usage_error.h"

namespace gradring::train::api {
namespace {

constexpr std::int64_t kMostSize = std::numeric_limits<std::int32_t>::max();
constexpr int kMostClasses = 256;

/// Checks `value`, which must be in 1 .. `most`.
void check_count(const std::string& dataset, const char* what, std::int64_t value, std::int64_t most) {
  if (value < 1 || value > most)
    throw InvalidArgument(
        fmt::format("the data set {} has {} {}, expected 1 to {}: correct its class", dataset, value, what, most));
}

void check_name(const std::string& name) {
  const auto is_allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
  if (name.empty() || !std::ranges::all_of(name, is_allowed))
    throw InvalidArgument(
        fmt::format("the name of a data set is '{}', expected letters, digits, '-' and '_': correct its class", name));
}

void check_names(const data::InMemoryDataset::Contents& contents) {
  const auto names = std::ssize(contents.class_names);
  if (names == 0) return;
  if (names != contents.classes)
    throw InvalidArgument(fmt::format("the data set {} has {} names for its {} classes: correct its class",
                                      contents.name, names, contents.classes));
  data::check_class_names(contents.name, contents.class_names);
}

data::InMemoryDataset::Contents contents_of(const Dataset& dataset) {
  data::InMemoryDataset::Contents contents;
  ImageShape shape;
  std::int64_t size = 0;
  run_callers_code([&] {
    contents.name = dataset.name();
    contents.classes = dataset.classes();
    contents.class_names = dataset.class_names();
    shape = dataset.shape();
    size = dataset.size();
  });
  check_name(contents.name);
  check_count(contents.name, "samples", size, kMostSize);
  check_count(contents.name, "classes", contents.classes, kMostClasses);
  check_names(contents);
  for (const std::int64_t extent : {shape.height, shape.width, shape.channels})
    check_count(contents.name, "pixels or channels in a direction", extent, 1 << 16);
  contents.shape = {shape.height, shape.width, shape.channels};
  const auto bytes = static_cast<std::uint64_t>(size) * static_cast<std::uint64_t>(contents.shape.elements());
  data::require_memory(contents.name, fmt::format("{} samples of {}", size, contents.shape.to_string()), bytes);
  contents.labels.resize(static_cast<std::size_t>(size));
  contents.pixels.resize(bytes);
  return contents;
}

}  // namespace

std::shared_ptr<const data::Dataset> copy_of(const Dataset& dataset) {
  data::InMemoryDataset::Contents contents = contents_of(dataset);
  const auto sample_bytes = static_cast<std::size_t>(contents.shape.elements());
  for (std::size_t i = 0; i < contents.labels.size(); ++i) {
    int label = 0;
    run_callers_code([&] {
      label = dataset.read(static_cast<std::int64_t>(i),
                           std::span(contents.pixels).subspan(i * sample_bytes, sample_bytes));
    });
    if (label < 0 || label >= contents.classes)
      throw InvalidArgument(
          fmt::format("sample {} of the data set {} has label {}, expected 0 to {}: correct its class", i,
                      contents.name, label, contents.classes - 1));
    contents.labels[i] = label;
  }
  return std::make_shared<data::InMemoryDataset>(std::move(contents));
}

TrainConfig config_of(const Options& options, const Model& model, const data::Dataset& dataset) {
  OptionTexts texts(options.values().begin(), options.values().end());
  texts.try_emplace("progress", "none");
  OwnTraining own{.dataset = data::facts_of(dataset), .model = {model.name(), model.toml()}};
  if (!own.model.text.empty() && !is_model_file(own.model.name)) own.model.name += ".toml";
  const auto file = options.config_file().empty() ? std::nullopt : std::optional(options.config_file());
  return resolve_own(own, texts, system_variables(), file).config;
}

}  // namespace gradring::train::api
