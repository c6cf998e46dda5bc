// SPDX-License-Identifier: Apache-2.0
#include "train/app/rank/rank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "kernels/runtime/cpu_level.h"
#include "tests/train/support/every_option.h"
#include "tests/train/support/rank_rig.h"
#include "train/core/config/options.h"
#include "train/core/trainer/replica.h"
#include "train/core/trainer/training_state.h"

namespace gradring::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::run_ranks;

Checkpoint saved_on(const std::string& device, const std::string& plans) {
  return {.step = 1,
          .model = {},
          .state = {},
          .about = nlohmann::ordered_json{{kDevice, device}, {kPlans, nlohmann::ordered_json::parse(plans)}}};
}

TEST(Rank, SaysThatItKeepsTheKernelsOfTheCheckpoint) {
  Rank rank({.device = "cpu"}, {});
  const std::string plans = R"([{"layers": ["fc"], "by": "gemm/tiled"}])";
  EXPECT_THAT(rank.keep_plans(saved_on("NVIDIA A100", plans)),
              AllOf(HasSubstr("stay those that were chosen on NVIDIA A100"), HasSubstr("--no-autotune")));
  EXPECT_THAT(rank.keep_plans(saved_on(rank.compute().device->description(), plans)),
              HasSubstr("as far as this device has them"))
      << "--autotune does nothing then";
  EXPECT_EQ(rank.keep_plans(saved_on("NVIDIA A100", "[]")), "");
}

std::vector<RankFacts> two_ranks(const Agreement& first, const Agreement& second) {
  return {{.rank = 0, .host = "node1", .sections = {first.mine}},
          {.rank = 1, .host = "node2", .sections = {second.mine}}};
}

std::string differences(const Agreement& first, const Agreement& second) {
  return describe_differences(two_ranks(first, second), 0, first.advice);
}

TEST(RankAgreements, CompareEveryOptionButWhereARankFindsItsFiles) {
  for (const tests::OneOption& option : tests::every_option()) {
    TrainConfig other;
    find_option(option.name)->read(other, option.value);
    const std::string text = differences(same_options(TrainConfig()), same_options(other));
    constexpr std::string_view kOfRank[] = {"data-dir", "run-dir", "nprocs", "name", "tags"};
    if (std::ranges::find(kOfRank, option.name) != std::end(kOfRank))
      EXPECT_EQ(text, "");
    else
      EXPECT_THAT(text, AllOf(HasSubstr(option.name + " is "), HasSubstr("give all ranks the same options")));
  }
}

TEST(RankAgreements, TakeRank0sPathOfWhatItReadsForAll) {
  const TrainConfig first{.resume = "a/step-1", .weights = "a.pt", .optimizer_state = "a.opt"};
  const TrainConfig second{.resume = "b/step-1", .weights = "b.pt", .optimizer_state = "b.opt"};
  EXPECT_EQ(differences(same_options(first), same_options(second)), "");
  EXPECT_FALSE(same_paths(first).is_required);
  EXPECT_THAT(differences(same_paths(first), same_paths(second)),
              AllOf(HasSubstr("weights is \"a.pt\" on rank 0 (node1) but \"b.pt\" on rank 1 (node2)"),
                    HasSubstr("rank 0 reads the file for all ranks")));
  EXPECT_THAT(differences(same_options(first), same_options({})),
              AllOf(HasSubstr("weights is a path on rank 0 (node1) but \"\" on rank 1 (node2)"),
                    HasSubstr("resume is a path on rank 0 (node1) but \"none\"")));
  EXPECT_THAT(differences(same_options({.resume = "auto"}), same_options({.resume = "auto-or-restart"})),
              HasSubstr("resume is \"auto\""));
}

TEST(RankAgreements, AdviseTheLowerCpuLevel) {
  const std::string level(kernels::cpu_level_name(kernels::CpuLevel::baseline));
  EXPECT_THAT(differences(same_cpu_level("x86-64-v9"), same_cpu_level(level)),
              AllOf(HasSubstr("the CPU level is x86-64-v9 on rank 0 (node1) but " + level + " on rank 1 (node2)"),
                    HasSubstr(kernels::cpu_levels().size() > 1
                                  ? "set GRADRING_CPU_LEVEL=" + level + " on all ranks"
                                  : "use the build and the environment that ran x86-64-v9 on all ranks")));
}

class SameData : public ::testing::Test {
 protected:
  static Datasets sets(const std::function<void(data::InMemoryDataset::Contents&)>& change_training,
                       const std::function<void(data::InMemoryDataset::Contents&)>& change_test) {
    const auto made = [](const auto& change) {
      data::InMemoryDataset::Contents contents{
          .name = "mnist", .shape = {1, 2, 1}, .classes = 3, .pixels = {1, 2, 3, 4}, .labels = {2, 0}};
      change(contents);
      return std::make_unique<data::InMemoryDataset>(std::move(contents));
    };
    return {.train_set = made(change_training), .validation_set = made(kNothing), .test_set = made(change_test)};
  }
  /// The differences in number and in content between data as it should be and other data.
  static std::vector<std::string> found(const Datasets& other, const TrainConfig& there = {.data_dir = "/b"}) {
    const Datasets mine = sets(kNothing, kNothing);
    const auto first = same_data({.data_dir = "/a"}, mine, hashes_of(mine));
    const auto second = same_data(there, other, hashes_of(other));
    return {differences(first.at(0), second.at(0)), differences(first.at(1), second.at(1))};
  }

  static constexpr auto kNothing = [](data::InMemoryDataset::Contents&) {};
};

TEST_F(SameData, AcceptsEqualSamplesOfTwoFolders) { EXPECT_THAT(found(sets(kNothing, kNothing)), ElementsAre("", "")); }

TEST_F(SameData, NamesTheSetTheCountsAndTheFolders) {
  const auto shorter = [](data::InMemoryDataset::Contents& contents) {
    contents.labels.pop_back();
    contents.pixels.resize(2);
  };
  const std::string text = found(sets(shorter, kNothing)).front();
  EXPECT_THAT(text, HasSubstr("the size of the training set is 2 samples on rank 0 (node1, /a) but 1 samples on rank 1 "
                              "(node2, /b); give every rank the same files with --data-dir"));
  EXPECT_THAT(found(sets(kNothing, shorter)).front(), HasSubstr("the size of the test set is 2 samples on rank 0"));
}

TEST_F(SameData, NamesTheSetWithOtherContent) {
  const auto other_label = [](data::InMemoryDataset::Contents& contents) { contents.labels[0] = 1; };
  const auto other_pixel = [](data::InMemoryDataset::Contents& contents) { contents.pixels[3] = 0; };
  EXPECT_THAT(found(sets(other_label, kNothing)),
              ElementsAre("", HasSubstr("the SHA-256 of the training set's samples is ")));
  EXPECT_THAT(found(sets(kNothing, other_pixel)),
              ElementsAre("", HasSubstr("the SHA-256 of the test set's samples is ")));
}

/// What ranks say whose newest checkpoints are of these steps.
std::vector<std::string> said_of(const std::vector<std::int64_t>& steps) {
  std::vector<std::string> all(steps.size());
  run_ranks(static_cast<int>(steps.size()), [&](comm::ProcessGroup& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    try {
      check_no_later_checkpoint(group, steps[rank], "/run" + std::to_string(rank));
    } catch (const ReplicaError& error) {
      all[rank] = error.what();
    }
  });
  return all;
}

TEST(NewestCheckpoint, OfRank0IsTheNewestOfAll) {
  EXPECT_THAT(said_of({-1, -1, -1}), ElementsAre("", "", ""));
  EXPECT_THAT(said_of({20, 20, -1}), ElementsAre("", "", "")) << "a disk without the run";
  for (const std::string& text : said_of({-1, -1, 20}))
    EXPECT_THAT(text, AllOf(HasSubstr("the newest checkpoint is missing on rank 0 ("),
                            HasSubstr(", /run0) but of step "
                                      "20 on rank 2 ("),
                            HasSubstr("rank 0 resumes for all ranks")));
  for (const std::string& text : said_of({10, 20}))
    EXPECT_THAT(text, HasSubstr("the newest checkpoint is of step 10 on rank 0"));
}

}  // namespace
}  // namespace gradring::train
