// SPDX-License-Identifier: Apache-2.0
// Steps that compute activations twice train as those that keep them: ranks, windows of batches, types.
#include <gtest/gtest.h>

#include <ostream>

#include "tests/train/support/rank_rig.h"

namespace gradring::tests {
namespace {

using kernels::DType;
using Kind = nn::Checkpointing::Kind;

struct Case {
  std::string name;
  int world = 1;
  std::int64_t max_batch = 8;
  DType precision = DType::f32;
  bool recorded = false;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class CheckpointedSteps : public testing::TestWithParam<Case> {
 protected:
  /// Rank 0's weights after three steps, of 8, 8 and 5 samples a rank.
  static std::vector<std::vector<float>> train(const nn::Checkpointing& checkpointing) {
    const Case& c = GetParam();
    const auto dataset = golden_images();
    std::vector<std::vector<float>> weights;
    run_ranks(c.world, [&](comm::ProcessGroup& group) {
      RankRig::Options options;
      options.model = "convnet-deep";
      options.max_batch = c.max_batch;
      options.accumulates = c.max_batch < 8;
      options.precision = c.precision;
      options.loss_scaling.dynamic = c.precision == DType::f16;
      options.checkpointing = checkpointing;
      options.recorded = c.recorded;
      RankRig rig(group, *dataset, options);
      for (const std::int64_t samples : {8, 8, 5}) {
        std::vector<std::int64_t> indices;
        for (std::int64_t i = 0; i < samples; ++i) indices.push_back(i * c.world + group.rank());
        rig.step(indices, samples * c.world);
      }
      if (group.rank() == 0) weights = rig.weights();
    });
    return weights;
  }
};

TEST_P(CheckpointedSteps, EndWithTheSameBits) {
  const auto kept = train({});
  EXPECT_EQ(train({.kind = Kind::automatic}), kept);
  EXPECT_EQ(train({.kind = Kind::segments, .segments = 3}), kept);
}

INSTANTIATE_TEST_SUITE_P(Layouts, CheckpointedSteps,
                         testing::Values(Case{.name = "OneRank"}, Case{.name = "TwoRanks", .world = 2},
                                         Case{.name = "Windows", .max_batch = 3},  // 3, 3 and 2 samples
                                         Case{.name = "TwoRanksWindows", .world = 2, .max_batch = 4},
                                         Case{.name = "Fp16", .precision = DType::f16},
                                         Case{.name = "Recorded", .recorded = true},
                                         Case{.name = "Bf16Windows", .max_batch = 4, .precision = DType::bf16}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace gradring::tests
