// SPDX-License-Identifier: Apache-2.0
#include "nn/program/activation_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include "kernels/base/error.h"

namespace gradring::nn {
namespace {

using Kind = Checkpointing::Kind;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::size_t kUnit = ActivationLayout::kAlignment;

/// Stands for the block: who wrote each unit of it last. Tensors are "output 3", "saved 3".
class Block {
 public:
  Block(const ActivationLayout& layout, const std::vector<StageBytes>& stages)
      : layout_(layout), stages_(stages), units_(layout.bytes / kUnit) {
    EXPECT_EQ(layout.bytes % kUnit, 0u);
  }

  void forward(std::size_t stage) {
    if (stage > 0) expect_output(stage - 1);  // its input, before and after: what it writes must not lie over it
    write(layout_.stages[stage].output, stages_[stage].output, name("output", stage));
    write(layout_.stages[stage].saved, stages_[stage].saved, name("saved", stage));
    if (stage > 0) expect_output(stage - 1);
    expect_stage(stage);
  }
  void backward(std::size_t stage) const {
    if (stage > 0) expect_output(stage - 1);
    expect_stage(stage);
  }
  void expect_output(std::size_t stage) const {
    expect(layout_.stages[stage].output, stages_[stage].output, name("output", stage));
  }

 private:
  static std::string name(const std::string& what, std::size_t stage) { return what + " " + std::to_string(stage); }
  static std::size_t units(std::size_t bytes) { return (bytes + kUnit - 1) / kUnit; }

  void expect_stage(std::size_t stage) const {
    expect_output(stage);
    expect(layout_.stages[stage].saved, stages_[stage].saved, name("saved", stage));
  }
  void write(std::size_t offset, std::size_t bytes, const std::string& who) {
    ASSERT_EQ(offset % kUnit, 0u);
    ASSERT_LE(offset + bytes, layout_.bytes) << who;
    for (std::size_t i = 0; i < units(bytes); ++i) units_[offset / kUnit + i] = who;
  }
  void expect(std::size_t offset, std::size_t bytes, const std::string& who) const {
    for (std::size_t i = 0; i < units(bytes); ++i) ASSERT_EQ(units_[offset / kUnit + i], who);
  }

  const ActivationLayout& layout_;
  const std::vector<StageBytes>& stages_;
  std::vector<std::string> units_;
};

std::vector<StageBytes> random_stages(std::mt19937& random) {
  std::vector<StageBytes> stages(1 + random() % 9);
  for (StageBytes& stage : stages) stage = {.output = 1 + random() % 3000, .saved = random() % 2 * (random() % 2000)};
  return stages;
}

TEST(ActivationLayout, BackwardFindsWhatForwardLeftWhateverTheSegments) {
  constexpr unsigned kSeed = 17;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  for (int round = 0; round < 300 && !testing::Test::HasFailure(); ++round) {
    const auto stages = random_stages(random);
    std::vector<std::size_t> ends;
    for (std::size_t i = 0; i < stages.size(); ++i)
      if (i + 1 == stages.size() || random() % 2 == 0) ends.push_back(i);
    const ActivationLayout layout = lay_out_for_backward(stages, ends);
    Block block(layout, stages);
    for (std::size_t i = 0; i < stages.size(); ++i) block.forward(i);
    for (std::size_t segment = ends.size(); segment-- > 0;) {
      const std::size_t first = segment == 0 ? 0 : ends[segment - 1] + 1;
      if (segment + 1 < ends.size())
        for (std::size_t i = first; i < ends[segment]; ++i) block.forward(i);
      for (std::size_t i = ends[segment] + 1; i-- > first;) block.backward(i);
    }
    block.expect_output(stages.size() - 1);  // the logits are still there
  }
}

TEST(ActivationLayout, OneSegmentKeepsEverythingAndNoMore) {
  const std::vector<StageBytes> stages = {{.output = 1000}, {.output = 256, .saved = 10}, {.output = 3}};
  const std::vector<std::size_t> ends = {2};
  EXPECT_EQ(lay_out_for_backward(stages, ends).bytes, 1024u + 256 + 256 + 256);
}

TEST(ActivationLayout, SegmentsShareTheirInsides) {
  const std::vector<StageBytes> stages(8, StageBytes{.output = 1024, .saved = 512});
  const std::vector<std::size_t> ends = {3, 7};
  // Two ends stay, the three before each of them share their place.
  EXPECT_EQ(lay_out_for_backward(stages, ends).bytes, (2u + 3u) * 1536);
}

/// The last readers of outputs that only the next stage reads.
std::vector<std::size_t> readers_in_a_chain(std::size_t stages) {
  std::vector<std::size_t> readers(stages);
  std::iota(readers.begin(), readers.end(), 1);
  return readers;
}

TEST(ActivationLayout, ForwardAloneKeepsTwoOutputs) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    const auto stages = random_stages(random);
    const ActivationLayout layout = lay_out_for_forward(stages, readers_in_a_chain(stages.size()));
    Block block(layout, stages);
    for (std::size_t i = 0; i < stages.size(); ++i) block.forward(i);
    block.expect_output(stages.size() - 1);
  }
  const std::vector<StageBytes> equal(9, StageBytes{.output = 1024, .saved = 256});
  EXPECT_EQ(lay_out_for_forward(equal, readers_in_a_chain(9)).bytes, 2 * 1024u + 256);
}

TEST(Placement, NothingOverlapsThatLivesAtTheSameTime) {
  std::mt19937 random(5);
  for (int round = 0; round < 200 && !testing::Test::HasFailure(); ++round) {
    std::vector<Lifetime> blocks(1 + random() % 20);
    for (Lifetime& block : blocks) {
      block = {.bytes = random() % 4 * (random() % 3000), .first = random() % 10};
      block.last = block.first + random() % 5;
    }
    const Placement placed = assign_offsets(blocks);
    std::size_t most = 0;  // at one time: no placement needs less
    for (std::size_t time = 0; time < 15; ++time) {
      std::size_t bytes = 0;
      for (const Lifetime& block : blocks)
        if (block.first <= time && time <= block.last) bytes += block.bytes;
      most = std::max(most, bytes);
    }
    EXPECT_GE(placed.bytes, most);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(placed.offsets[i] % kUnit, 0u);
      EXPECT_LE(placed.offsets[i] + blocks[i].bytes, placed.bytes);
      for (std::size_t j = 0; j < i; ++j) {
        const bool together = blocks[i].first <= blocks[j].last && blocks[j].first <= blocks[i].last;
        const bool apart = placed.offsets[i] + blocks[i].bytes <= placed.offsets[j] ||
                           placed.offsets[j] + blocks[j].bytes <= placed.offsets[i];
        EXPECT_TRUE(!together || apart) << i << " and " << j;
      }
    }
  }
}

TEST(Placement, OfAChainNeedsItsTwoLargestNeighbours) {
  const std::vector<Lifetime> blocks = {{1024, 0, 1}, {2048, 1, 2}, {4096, 2, 3}, {512, 3, 4}};
  EXPECT_EQ(assign_offsets(blocks).bytes, 4096u + 2048u);
}

TEST(ActivationLayout, RejectsSegmentsThatEndTooEarly) {
  const std::vector<StageBytes> stages(3);
  const std::vector<std::size_t> ends = {1};
  EXPECT_THROW(lay_out_for_backward(stages, ends), InvalidArgument);
  EXPECT_THROW(lay_out_for_backward(stages, {}), InvalidArgument);
}

/// What the segments that end with `ends` cost, by the definition: the most that is alive when backward comes to each.
Segmentation weigh(const std::vector<StageCost>& stages, const std::vector<std::size_t>& ends) {
  Segmentation result{.ends = ends};
  for (std::size_t segment = 0; segment < ends.size(); ++segment) {
    const std::size_t first = segment == 0 ? 0 : ends[segment - 1] + 1;
    std::size_t alive = stages.back().bytes;
    for (std::size_t earlier = 0; earlier <= segment; ++earlier)
      if (earlier + 1 < ends.size()) alive += stages[ends[earlier]].bytes;
    for (std::size_t i = first; i < ends[segment]; ++i) {
      alive += stages[i].bytes;
      if (segment + 1 < ends.size()) result.work += stages[i].work;
    }
    result.peak_bytes = std::max(result.peak_bytes, alive);
  }
  return result;
}

/// Every segmentation there is.
std::vector<Segmentation> all_of(const std::vector<StageCost>& stages) {
  std::vector<Segmentation> all;
  for (unsigned cuts = 0; cuts < 1u << (stages.size() - 1); ++cuts) {
    std::vector<std::size_t> ends;
    for (std::size_t i = 0; i < stages.size(); ++i)
      if (i + 1 == stages.size() || (cuts >> i & 1) != 0) ends.push_back(i);
    all.push_back(weigh(stages, ends));
  }
  return all;
}

std::size_t least_bytes(const std::vector<Segmentation>& all, std::size_t most_segments) {
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const Segmentation& one : all)
    if (one.ends.size() <= most_segments) least = std::min(least, one.peak_bytes);
  return least;
}

double least_work(const std::vector<Segmentation>& all, std::size_t budget) {
  double least = std::numeric_limits<double>::max();
  for (const Segmentation& one : all)
    if (one.peak_bytes <= budget) least = std::min(least, one.work);
  return least;
}

TEST(ChooseSegments, FindsWhatTryingAllOfThemFinds) {
  constexpr unsigned kSeed = 23;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  for (int round = 0; round < 200; ++round) {
    std::vector<StageCost> stages(1 + random() % 9);
    for (StageCost& stage : stages) stage = {.bytes = random() % 100, .work = static_cast<double>(random() % 100)};
    const auto all = all_of(stages);
    const auto expect_honest = [&](const Segmentation& chosen) {
      const Segmentation weighed = weigh(stages, chosen.ends);
      EXPECT_EQ(chosen.peak_bytes, weighed.peak_bytes);
      EXPECT_EQ(chosen.work, weighed.work);
    };
    for (std::int64_t segments = 1; segments <= 4; ++segments) {
      const Segmentation chosen = choose_segments(stages, {.kind = Kind::segments, .segments = segments});
      expect_honest(chosen);
      EXPECT_LE(chosen.ends.size(), static_cast<std::size_t>(segments));
      EXPECT_EQ(chosen.peak_bytes, least_bytes(all, static_cast<std::size_t>(segments)));
    }
    const Segmentation least = choose_segments(stages, {.kind = Kind::automatic});
    expect_honest(least);
    EXPECT_EQ(least.peak_bytes, least_bytes(all, stages.size()));
    EXPECT_EQ(least.work, least_work(all, least.peak_bytes));
    for (const Segmentation& one : all) {
      if (one.peak_bytes == 0) continue;  // would be no budget
      const Segmentation chosen = choose_segments(stages, {.kind = Kind::automatic, .budget_bytes = one.peak_bytes});
      expect_honest(chosen);
      EXPECT_LE(chosen.peak_bytes, one.peak_bytes);
      EXPECT_EQ(chosen.work, least_work(all, one.peak_bytes));
    }
  }
}

TEST(ChooseSegments, WithoutCheckpointingThereIsOneAndNothingIsComputedTwice) {
  const std::vector<StageCost> stages = {{5, 1}, {6, 2}, {7, 3}};
  const Segmentation chosen = choose_segments(stages, {});
  EXPECT_THAT(chosen.ends, ElementsAre(2));
  EXPECT_EQ(chosen.peak_bytes, 18u);
  EXPECT_EQ(chosen.work, 0);
}

TEST(ChooseSegments, AGenerousBudgetLeavesThingsAsTheyAre) {
  const std::vector<StageCost> stages(12, StageCost{10, 1});
  const Segmentation chosen = choose_segments(stages, {.kind = Kind::automatic, .budget_bytes = 120});
  EXPECT_THAT(chosen.ends, ElementsAre(11));
}

TEST(ChooseSegments, CountsWhatStagesWithoutABackwardPassNeed) {
  const std::vector<StageCost> stages(12, StageCost{10, 1});
  const auto choose = [&](std::size_t budget, const ForwardOnlyBytes& before) {
    return choose_segments(stages, {.kind = Kind::automatic, .budget_bytes = budget}, before);
  };
  EXPECT_THAT(choose(150, {.kept = 30, .peak = 150}).ends, ElementsAre(11));
  EXPECT_EQ(choose(150, {.kept = 30, .peak = 90}).peak_bytes, 150u);
  EXPECT_GT(choose(149, {.kept = 30, .peak = 90}).ends.size(), 1u);
  EXPECT_THROW(choose(149, {.kept = 30, .peak = 150}), InvalidArgument) << "they do not run within it";
  EXPECT_THAT(choose(0, {.kept = 0, .peak = 120}).ends, ElementsAre(11)) << "less would not lower the peak";
}

TEST(ChooseSegments, KeepsTheEndsThatAreSmall) {  // as pooling leaves them
  const std::vector<StageCost> stages = {{40, 9}, {40, 9}, {1, 9}, {40, 9}, {40, 9}, {1, 9}, {80, 9}, {1, 1}};
  EXPECT_THAT(choose_segments(stages, {.kind = Kind::segments, .segments = 3}).ends, ElementsAre(2, 5, 7));
}

TEST(ChooseSegments, SaysHowLittleTheActivationsCanDoWith) {
  const std::vector<StageCost> stages(4, StageCost{3 << 19, 1});
  try {
    choose_segments(stages, {.kind = Kind::automatic, .budget_bytes = 1 << 20});
    FAIL() << "no stage fits";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("budget of 1.000 MiB"));
    EXPECT_THAT(error.what(), HasSubstr("4.500 MiB"));
  }
}

TEST(ChooseSegments, ManyStagesAreNoMatterOfPatience) {  // a ResNet's worth; trying all would take 2^59 looks
  std::mt19937 random(5);
  std::vector<StageCost> stages(60);
  for (StageCost& stage : stages) stage = {.bytes = 1 + random() % 1000, .work = static_cast<double>(random() % 1000)};
  const Segmentation least = choose_segments(stages, {.kind = Kind::automatic});
  EXPECT_GT(least.ends.size(), 2u);
  const std::size_t budget = 2 * least.peak_bytes;
  EXPECT_LT(choose_segments(stages, {.kind = Kind::automatic, .budget_bytes = budget}).work, least.work);
}

TEST(ChooseSegments, RejectsNoSegmentsAndNoStages) {
  const std::vector<StageCost> stages(2);
  EXPECT_THROW(choose_segments(stages, {.kind = Kind::segments, .segments = 0}), InvalidArgument);
  EXPECT_THROW(choose_segments({}, {}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::nn
