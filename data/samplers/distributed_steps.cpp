// SPDX-License-Identifier: Apache-2.0
#include "data/loader/batch_geometry.h"
#include "data/samplers/distributed_sampler.h"
#include "data/samplers/step_sampler.h"
#include "kernels/runtime/error.h"

namespace gradring::data {
namespace {

class DistributedSteps final : public StepSampler {
 public:
  explicit DistributedSteps(const StepSamplerSpec& spec)
      : sampler_({.samples = spec.samples, .rank = spec.rank, .world_size = spec.world_size, .seed = spec.seed}),
        world_size_(spec.world_size),
        windows_{.samples = sampler_.size(), .batch_size = spec.samples_of_step / spec.world_size} {
    check(spec.samples_of_step > 0 && spec.samples_of_step % spec.world_size == 0,
          "a step's samples must be a multiple of the ranks");
  }

  std::string_view name() const override { return "distributed"; }
  std::vector<std::int64_t> order(std::int64_t epoch) const override { return sampler_.order(epoch); }
  std::int64_t steps() const override { return windows_.steps(); }
  std::int64_t samples_of_step() const override { return windows_.batch_size * world_size_; }
  std::int64_t most_of_rank() const override { return windows_.batch_size; }
  StepShare step(std::int64_t index) const override {
    const std::int64_t begin = windows_.begin(index), end = windows_.end(index);
    return {.begin = begin,
            .end = end,
            .most = end - begin,
            .samples = (end - begin) * world_size_,
            .position = begin * world_size_};
  }

 private:
  DistributedSampler sampler_;
  std::int64_t world_size_;
  BatchGeometry windows_;
};

}  // namespace

std::unique_ptr<StepSampler> make_distributed_steps(const StepSamplerSpec& spec) {
  return std::make_unique<DistributedSteps>(spec);
}

}  // namespace gradring::data
