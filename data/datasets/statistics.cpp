// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/statistics.h"

#include <cmath>
#include <string>

#include "kernels/runtime/error.h"

namespace gradring::data {
namespace {

/// Of one channel's bytes.
struct Sums {
  std::uint64_t values = 0;
  std::uint64_t squares = 0;
};

}  // namespace

DatasetStatistics statistics_of(const Dataset& dataset) {
  check(dataset.size() > 0, std::string(dataset.name()) + " has no samples, hence no mean");
  const auto channels = static_cast<std::size_t>(dataset.shape()[2]);
  std::vector<Sums> sums(channels);
  DatasetStatistics result{.samples_of_class = std::vector<std::int64_t>(static_cast<std::size_t>(dataset.classes()))};
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    const Sample sample = dataset.get(i);
    ++result.samples_of_class.at(static_cast<std::size_t>(sample.label));
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

}  // namespace gradring::data
