// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/content_hash.h"

#include <span>
#include <string>
#include <vector>

namespace gradring::data {

Sha256 content_hash(const Dataset& dataset) {
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
