// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/datasets/dataset.h"

namespace gradring::data {

/// Some samples of another dataset, in an order of their own. Holds the dataset, which others may hold as well.
///
/// Errors    InvalidArgument if an index is not in the dataset.
class Subset final : public Dataset {
 public:
  Subset(std::shared_ptr<const Dataset> whole, std::vector<std::int64_t> indices);

  std::string_view name() const override { return whole_->name(); }
  std::int64_t size() const override { return std::ssize(indices_); }
  kernels::Shape shape() const override { return whole_->shape(); }
  int classes() const override { return whole_->classes(); }
  std::span<const std::string> class_names() const override { return whole_->class_names(); }
  std::span<const std::uint8_t> pixels(std::int64_t index) const override { return whole_->pixels(at(index)); }
  int label(std::int64_t index) const override { return whole_->label(at(index)); }
  std::optional<Sha256> known_hash() const override;

  /// Of its samples in the whole dataset.
  const std::vector<std::int64_t>& indices() const { return indices_; }

 private:
  std::int64_t at(std::int64_t index) const;

  std::shared_ptr<const Dataset> whole_;
  std::vector<std::int64_t> indices_;
};

struct RandomSplit {
  std::unique_ptr<Subset> rest;
  std::unique_ptr<Subset> held_out;
};

/// Divides a dataset at random in two. The same samples as
/// torch.utils.data.random_split(set, [size - held_out, held_out], generator=torch.Generator().manual_seed(seed)): the
/// first of a permutation remain. Classes are not balanced.
///
/// Errors    InvalidArgument if `held_out` is not in 0 .. size, or as torch_permutation.
/// Source    torch/utils/data/dataset.py
RandomSplit random_split(const std::shared_ptr<const Dataset>& whole, std::int64_t held_out, std::uint64_t seed);

/// The same, but with each class's share of the dataset in both parts: classes get their quotas of `held_out` by the
/// method of largest remainders, and of each class the last samples of the permutation are held out. At least one
/// sample of each class remains.
///
/// Errors    as random_split; InvalidArgument if one sample of each class could not remain.
RandomSplit stratified_split(const std::shared_ptr<const Dataset>& whole, std::int64_t held_out, std::uint64_t seed);

}  // namespace gradring::data
