// SPDX-License-Identifier: Apache-2.0
#include "data/loader/random_split.h"

#include <algorithm>
#include <string>
#include <utility>

#include "data/loader/sampler.h"
#include "kernels/base/error.h"

namespace gradring::data {

Subset::Subset(std::shared_ptr<const Dataset> whole, std::vector<std::int64_t> indices)
    : whole_(std::move(whole)), indices_(std::move(indices)) {
  for (const std::int64_t index : indices_)
    check(index >= 0 && index < whole_->size(), "a subset has sample " + std::to_string(index) + " of the " +
                                                    std::to_string(whole_->size()) + " of " +
                                                    std::string(whole_->name()));
}

std::int64_t Subset::at(std::int64_t index) const {
  if (index < 0 || index >= size()) [[unlikely]]
    throw InvalidArgument("a subset of " + std::string(name()) + " has no sample " + std::to_string(index) +
                          ": it holds 0 to " + std::to_string(size() - 1));
  return indices_[static_cast<std::size_t>(index)];
}

RandomSplit random_split(const std::shared_ptr<const Dataset>& whole, std::int64_t held_out, std::uint64_t seed) {
  check(held_out >= 0 && held_out <= whole->size(), "a split of " + std::string(whole->name()) + " holds out " +
                                                        std::to_string(held_out) + " of " +
                                                        std::to_string(whole->size()) + " samples");
  const std::vector<std::int64_t> order = torch_permutation(whole->size(), seed);
  const auto middle = order.end() - held_out;
  return {.rest = std::make_unique<Subset>(whole, std::vector(order.begin(), middle)),
          .held_out = std::make_unique<Subset>(whole, std::vector(middle, order.end()))};
}

}  // namespace gradring::data
