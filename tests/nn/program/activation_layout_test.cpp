// SPDX-License-Identifier: Apache-2.0
#include "nn/program/activation_layout.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "kernels/runtime/error.h"

namespace gradring::nn {
namespace {

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

TEST(ActivationLayout, ForwardAloneKeepsTwoOutputs) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    const auto stages = random_stages(random);
    const ActivationLayout layout = lay_out_for_forward(stages);
    Block block(layout, stages);
    for (std::size_t i = 0; i < stages.size(); ++i) block.forward(i);
    block.expect_output(stages.size() - 1);
  }
  const std::vector<StageBytes> equal(9, StageBytes{.output = 1024, .saved = 256});
  EXPECT_EQ(lay_out_for_forward(equal).bytes, 2 * 1024u + 256);
}

TEST(ActivationLayout, TensorsInTurnNeedTheLargestOfEachTurn) {
  const std::vector<StageBytes> stages = {{.output = 9}, {.output = 4}, {.output = 7}, {.output = 5}};
  EXPECT_EQ(sizes_in_turn(stages), (std::array<std::size_t, 2>{5, 9}));
}

TEST(ActivationLayout, RefusesSegmentsThatEndTooEarly) {
  const std::vector<StageBytes> stages(3);
  const std::vector<std::size_t> ends = {1};
  EXPECT_THROW(lay_out_for_backward(stages, ends), InvalidArgument);
  EXPECT_THROW(lay_out_for_backward(stages, {}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::nn
