// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "nn/models/model.h"
#include "nn/program/arena.h"

namespace gradring::tests {

/// The weights of a model in host memory, in one bucket.
class HostArena {
 public:
  explicit HostArena(const nn::Model& model)
      : parameters_(nn::parameters_of(model)), layout_(one_bucket(parameters_)), values_(layout_.elements()) {}
  HostArena(const HostArena&) = delete;
  HostArena& operator=(const HostArena&) = delete;

  /// As PyTorch draws them.
  void draw(std::uint64_t seed) {
    const auto drawn = nn::draw_torch_uniform(parameters_, seed);
    for (std::size_t i = 0; i < drawn.size(); ++i)
      nn::from_torch_order(parameters_[i], drawn[i], {arena().parameter(static_cast<int>(i)), drawn[i].size()});
  }

  const std::vector<nn::Parameter>& parameters() const { return parameters_; }
  nn::Arena arena() { return {layout_, values_.data()}; }

 private:
  static nn::ArenaLayout one_bucket(const std::vector<nn::Parameter>& parameters) {
    std::vector<int> all(parameters.size());
    std::iota(all.begin(), all.end(), 0);
    return {parameters, std::vector<std::vector<int>>{all}, 1};
  }

  std::vector<nn::Parameter> parameters_;
  nn::ArenaLayout layout_;
  std::vector<float> values_;
};

}  // namespace gradring::tests
