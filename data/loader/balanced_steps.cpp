// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "data/datasets/dataset.h"
#include "data/loader/sampler.h"
#include "kernels/ops/gather_batch/draws.h"

namespace gradring::data {
namespace {

using kernels::gather_batch::earlier_visits_of;
using kernels::gather_batch::sample_of;
using kernels::gather_batch::visit_of;

/// Replaces the numbers 0 .. size - 1 that another sampler deals by the samples of a balanced epoch.
class BalancedSteps final : public StepSampler {
 public:
  BalancedSteps(std::unique_ptr<StepSampler> steps, const Dataset& dataset, std::uint64_t seed)
      : steps_(std::move(steps)), seed_(seed), size_(dataset.size()) {
    std::vector<std::vector<std::int64_t>> samples(static_cast<std::size_t>(dataset.classes()));
    for (std::int64_t i = 0; i < size_; ++i) samples[static_cast<std::size_t>(dataset.label(i))].push_back(i);
    for (std::vector<std::int64_t>& of_class : samples)
      if (!of_class.empty()) classes_.push_back(std::move(of_class));
  }

  std::string_view name() const override { return steps_->name(); }
  std::vector<std::int64_t> order(std::int64_t epoch) const override {
    const std::vector<std::int64_t> drawn = visits(epoch);
    std::vector<std::int64_t> order = steps_->order(epoch);
    for (std::int64_t& number : order)  // padding comes after all visits, of which there are size_
      number = drawn[static_cast<std::size_t>(sample_of(number))] + visit_of(0, earlier_visits_of(number) * size_);
    return order;
  }
  /// The samples of an epoch: class after class in turn, of each class in a random order, again and again. Which class
  /// begins changes from epoch to epoch.
  std::vector<std::int64_t> visits(std::int64_t epoch) const override {
    std::vector<std::int64_t> drawn(static_cast<std::size_t>(size_));
    const std::size_t classes = classes_.size();
    for (std::size_t c = 0; c < classes; ++c) {
      const std::vector<std::int64_t>& samples = classes_[c];
      const std::vector<std::int64_t> order = torch_permutation(std::ssize(samples), seed_of(epoch, c));
      std::size_t next = 0;
      std::int64_t round = 0;
      for (std::size_t i = (c + static_cast<std::size_t>(epoch)) % classes; i < drawn.size(); i += classes) {
        drawn[i] = visit_of(samples[static_cast<std::size_t>(order[next])], round);
        if (++next < order.size()) continue;
        next = 0;
        ++round;
      }
    }
    return drawn;
  }
  std::int64_t steps() const override { return steps_->steps(); }
  StepShare step(std::int64_t index) const override { return steps_->step(index); }
  std::int64_t number_in_step(std::int64_t index, std::int64_t offset) const override {
    return steps_->number_in_step(index, offset);
  }
  std::int64_t samples_of_step() const override { return steps_->samples_of_step(); }
  std::int64_t most_of_rank() const override { return steps_->most_of_rank(); }
  std::int64_t micro_batch_of_rank() const override { return steps_->micro_batch_of_rank(); }

 private:
  /// torch_permutation takes the lower 32 bits.
  std::uint64_t seed_of(std::int64_t epoch, std::size_t of_class) const {
    constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
    return ((seed_ + static_cast<std::uint64_t>(epoch)) * kOdd + of_class + 1) * kOdd >> 32;
  }

  std::unique_ptr<StepSampler> steps_;
  std::uint64_t seed_;
  std::int64_t size_;
  std::vector<std::vector<std::int64_t>> classes_;  // samples of each class that has some
};

}  // namespace

std::unique_ptr<StepSampler> make_balanced_steps(std::unique_ptr<StepSampler> steps, const Dataset& dataset,
                                                 std::uint64_t seed) {
  return std::make_unique<BalancedSteps>(std::move(steps), dataset, seed);
}

}  // namespace gradring::data
