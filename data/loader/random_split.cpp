// SPDX-License-Identifier: Apache-2.0
#include "data/loader/random_split.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <ranges>
#include <string>
#include <utility>

#include "data/loader/sampler.h"
#include "kernels/base/error.h"

namespace gradring::data {
namespace {

void check_held_out(const Dataset& whole, std::int64_t held_out) {
  check(held_out >= 0 && held_out <= whole.size(), "a split of " + std::string(whole.name()) + " holds out " +
                                                       std::to_string(held_out) + " of " +
                                                       std::to_string(whole.size()) + " samples");
}

/// How many samples of each class are held out.
std::vector<std::int64_t> quotas(const std::vector<std::int64_t>& samples, std::int64_t held_out) {
  const std::int64_t total = std::accumulate(samples.begin(), samples.end(), std::int64_t{0});
  std::vector<std::int64_t> quota, remainder, order;
  std::int64_t left = held_out;
  for (const std::int64_t count : samples) {
    quota.push_back(count * held_out / total);  // below count, since held_out is below total
    remainder.push_back(count * held_out % total);
    order.push_back(std::ssize(order));
    left -= quota.back();
  }
  const auto at = [](auto& values, std::int64_t i) -> auto& { return values[static_cast<std::size_t>(i)]; };
  std::ranges::stable_sort(order, std::greater{}, [&](std::int64_t i) { return at(remainder, i); });
  while (left > 0)
    for (const std::int64_t i : order)
      if (left > 0 && at(quota, i) + 1 < at(samples, i)) {
        ++at(quota, i);
        --left;
      }
  return quota;
}

}  // namespace

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

std::optional<Sha256> Subset::known_hash() const {
  const auto whole = whole_->known_hash();
  if (!whole) return std::nullopt;
  Sha256Sum sum;
  sum.add(*whole);
  sum.add(std::as_bytes(std::span(indices_)));
  return sum.finish();
}

RandomSplit stratified_split(const std::shared_ptr<const Dataset>& whole, std::int64_t held_out, std::uint64_t seed) {
  check_held_out(*whole, held_out);
  const std::vector<std::int64_t> samples = samples_of_class(*whole);
  const std::int64_t classes = std::ranges::count_if(samples, [](std::int64_t count) { return count > 0; });
  check(held_out <= whole->size() - classes,
        "a split of " + std::string(whole->name()) + " holds out " + std::to_string(held_out) + " of " +
            std::to_string(whole->size()) + " samples, expected at most " + std::to_string(whole->size() - classes) +
            ", so that one of each of its " + std::to_string(classes) + " classes remains");
  std::vector<std::int64_t> quota = quotas(samples, held_out);
  std::vector<std::int64_t> rest, held;
  std::vector<std::int64_t> order = torch_permutation(whole->size(), seed);
  for (const std::int64_t index : std::views::reverse(order)) {
    std::int64_t& left = quota[static_cast<std::size_t>(whole->label(index))];
    (left > 0 ? held : rest).push_back(index);
    left -= left > 0;
  }
  std::ranges::reverse(rest);
  std::ranges::reverse(held);
  return {.rest = std::make_unique<Subset>(whole, std::move(rest)),
          .held_out = std::make_unique<Subset>(whole, std::move(held))};
}

RandomSplit random_split(const std::shared_ptr<const Dataset>& whole, std::int64_t held_out, std::uint64_t seed) {
  check_held_out(*whole, held_out);
  const std::vector<std::int64_t> order = torch_permutation(whole->size(), seed);
  const auto middle = order.end() - held_out;
  return {.rest = std::make_unique<Subset>(whole, std::vector(order.begin(), middle)),
          .held_out = std::make_unique<Subset>(whole, std::vector(middle, order.end()))};
}

}  // namespace gradring::data
