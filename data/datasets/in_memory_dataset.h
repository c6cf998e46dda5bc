// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/datasets/dataset.h"

namespace gradring::data {

/// A data set that lies in memory, one byte a pixel.
class InMemoryDataset final : public Dataset {
 public:
  struct Contents {
    std::string name;
    kernels::Shape shape;  ///< of one sample
    int classes = 0;
    std::vector<std::uint8_t> pixels;  ///< sample after sample
    std::vector<std::uint8_t> labels;
  };

  /// Errors    InvalidArgument if pixels, labels and shape do not fit together, or a label is not below `classes`.
  explicit InMemoryDataset(Contents contents);

  std::string_view name() const override { return contents_.name; }
  std::int64_t size() const override { return static_cast<std::int64_t>(contents_.labels.size()); }
  kernels::Shape shape() const override { return contents_.shape; }
  int classes() const override { return contents_.classes; }
  std::span<const std::uint8_t> pixels(std::int64_t index) const override;
  int label(std::int64_t index) const override;

 private:
  void check_index(std::int64_t index) const;

  Contents contents_;
  std::size_t sample_bytes_ = 0;
};

}  // namespace gradring::data
