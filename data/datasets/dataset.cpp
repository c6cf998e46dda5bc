// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/dataset.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/datasets/dataset_facts.h"
#include "kernels/base/error.h"

namespace gradring::data {
namespace {

/// Of one channel.
struct Sums {
  std::uint64_t values = 0;
  std::uint64_t squares = 0;
};

}  // namespace

std::vector<std::string> numbered_classes(int classes) {
  std::vector<std::string> names;
  for (int i = 0; i < classes; ++i) names.push_back(std::to_string(i));
  return names;
}

InMemoryDataset::InMemoryDataset(Contents contents)
    : contents_(std::move(contents)), sample_bytes_(static_cast<std::size_t>(contents_.shape.elements())) {
  check(contents_.shape.rank() == 3,
        "a sample has shape " + contents_.shape.to_string() + ", expected [height, width, channels]");
  check(contents_.pixels.size() == contents_.labels.size() * sample_bytes_,
        "a dataset has " + std::to_string(contents_.pixels.size()) + " pixel bytes, expected " +
            std::to_string(contents_.labels.size()) + " samples of " + contents_.shape.to_string());
  const auto outside = std::ranges::find_if(
      contents_.labels, [&](std::int32_t label) { return label < 0 || label >= contents_.classes; });
  check(outside == contents_.labels.end(), "label " + std::to_string(outside == contents_.labels.end() ? 0 : *outside) +
                                               " is not below the " + std::to_string(contents_.classes) + " classes");
  if (contents_.class_names.empty()) contents_.class_names = numbered_classes(contents_.classes);
  check(std::ssize(contents_.class_names) == contents_.classes,
        "a dataset has " + std::to_string(contents_.class_names.size()) + " names of classes, expected " +
            std::to_string(contents_.classes));
}

std::span<const std::uint8_t> InMemoryDataset::pixels(std::int64_t index) const {
  check_index(index);
  return std::span(contents_.pixels).subspan(static_cast<std::size_t>(index) * sample_bytes_, sample_bytes_);
}

int InMemoryDataset::label(std::int64_t index) const {
  check_index(index);
  return contents_.labels[static_cast<std::size_t>(index)];
}

void InMemoryDataset::check_index(std::int64_t index) const {
  if (index < 0 || index >= size()) [[unlikely]]
    throw InvalidArgument(contents_.name + " has no sample " + std::to_string(index) + ": it holds 0 to " +
                          std::to_string(size() - 1));
}

DatasetFacts facts_of(const Dataset& dataset) {
  const auto names = dataset.class_names();
  return {.name = std::string(dataset.name()), .shape = dataset.shape(), .class_names = {names.begin(), names.end()}};
}

std::vector<std::int64_t> samples_of_class(const Dataset& dataset) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(dataset.classes()));
  for (std::int64_t i = 0; i < dataset.size(); ++i) ++samples.at(static_cast<std::size_t>(dataset.label(i)));
  return samples;
}

DatasetStatistics statistics_of(const Dataset& dataset) {
  check(dataset.size() > 0, std::string(dataset.name()) + " has no samples, so no statistics");
  const auto channels = static_cast<std::size_t>(dataset.shape()[2]);
  std::vector<Sums> sums(channels);
  DatasetStatistics result{.samples_of_class = samples_of_class(dataset)};
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    const Sample sample = dataset.get(i);
    for (std::size_t j = 0; j < sample.pixels.size(); ++j) {
      const std::uint64_t value = sample.pixels[j];
      sums[j % channels].values += value;
      sums[j % channels].squares += value * value;
    }
  }
  const double count = static_cast<double>(dataset.size() * dataset.shape().elements()) / static_cast<double>(channels);
  for (const Sums& sum : sums) {
    const double mean = static_cast<double>(sum.values) / count;
    result.mean.push_back(mean / 255);
    result.std.push_back(std::sqrt(static_cast<double>(sum.squares) / count - mean * mean) / 255);
  }
  return result;
}

Sha256 content_hash(const Dataset& dataset) {
  if (const auto known = dataset.known_hash()) return *known;
  Sha256Sum sum;
  const std::string kind = dataset.shape().to_string() + " " + std::to_string(dataset.classes());
  sum.add(std::as_bytes(std::span(kind)));
  std::vector<std::int32_t> labels;
  labels.reserve(static_cast<std::size_t>(dataset.size()));
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    const Sample sample = dataset.get(i);
    sum.add(std::as_bytes(sample.pixels));
    labels.push_back(sample.label);
  }
  sum.add(std::as_bytes(std::span(labels)));
  return sum.finish();
}

}  // namespace gradring::data
