// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/training_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kernels/host/host_device.h"
#include "kernels/runtime/cpu_level.h"
#include "tests/data/support/message_of.h"
#include "train/core/trainer/dataset_record.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/error.h"

namespace gradring::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class RecordedCpuLevel : public testing::Test {
 protected:
  std::string check(const nlohmann::ordered_json& about, bool reproducible = true) const {
    return check_cpu_level(about, device_, reproducible, "run/checkpoints/step-6");
  }

  kernels::HostDevice device_;
};

TEST_F(RecordedCpuLevel, NamesTheRunningLevel) {
  EXPECT_THAT(recorded_cpu_level(device_), testing::StartsWith(kernels::cpu_level_name(kernels::cpu_level())));
}

TEST_F(RecordedCpuLevel, AcceptsTheSameLevel) {
  for (const bool reproducible : {false, true})
    EXPECT_EQ(check({{kCpuLevel, recorded_cpu_level(device_)}}, reproducible), "");
}

TEST_F(RecordedCpuLevel, RemarksOnAnotherLevelOfARunThatIsNotReproducible) {
  EXPECT_THAT(check({{kCpuLevel, "x86-64-v9"}}, false),
              AllOf(HasSubstr("was saved with x86-64-v9 code; this run uses "), HasSubstr("to round as before")));
}

TEST_F(RecordedCpuLevel, RejectsAnotherLevelAndNamesBoth) {
  EXPECT_THAT(
      [&] {
        check({{kCpuLevel, "x86-64-v9"}});
      },
      ThrowsMessage<UsageError>(AllOf(HasSubstr("run/checkpoints/step-6 was saved with x86-64-v9 code"),
                                      HasSubstr("use the build and the environment that ran x86-64-v9"))));
}

TEST_F(RecordedCpuLevel, AdvisesTheVariableForALevelOfThisBuild) {
  const std::string level(kernels::cpu_level_name(kernels::CpuLevel::baseline));
  EXPECT_EQ(advice_for_cpu_level(level, "another"), "set GRADRING_CPU_LEVEL=" + level);
  EXPECT_EQ(advice_for_cpu_level(level, level + ", DNNL_MAX_CPU_ISA=SSE41"),
            "unset ONEDNN_MAX_CPU_ISA and DNNL_MAX_CPU_ISA");
}

TEST_F(RecordedCpuLevel, AcceptsGpuAndOlderCheckpoints) {
  EXPECT_NO_THROW(check({{kCpuLevel, ""}}));
  EXPECT_NO_THROW(check(nlohmann::ordered_json::object()));
}

using Json = nlohmann::ordered_json;

TEST(PlansByLayer, NameWhatComputedEachLayer) {
  const Json about = Json::parse(R"({"plans": [{"layers": ["conv1", "relu1"], "by": "conv_relu_pool/mma"},
                                               {"layers": ["fc"], "by": "gemm/tiled"}, {"layers": [], "by": "loss"}]})");
  EXPECT_EQ(plans_by_layer(about),
            (std::map<std::string, std::string>{
                {"conv1", "conv_relu_pool/mma"}, {"relu1", "conv_relu_pool/mma"}, {"fc", "gemm/tiled"}}));
}

TEST(PlansByLayer, AreUnknownInCheckpointsOfOthers) {
  for (const char* text :
       {"{}", R"({"plans": 3})", R"({"plans": [{"by": "gemm/tiled"}]})", R"({"plans": [{"layers": ["fc"], "by": 3}]})"})
    EXPECT_TRUE(plans_by_layer(Json::parse(text)).empty()) << text;
}

std::string rejection(const Json& about, const kernels::Shape& here) {
  return tests::message_of<CheckpointError>([&] { check_sample_shape(about, here, "run/checkpoints/step-20"); });
}

TEST(SampleShape, RejectsAnotherSize) {
  const Json about = {{kSampleShape, to_json(kernels::Shape{28, 28, 1})}};
  EXPECT_NO_THROW(check_sample_shape(about, {28, 28, 1}, "step-20"));
  EXPECT_EQ(
      rejection(about, {28, 29, 1}),
      "run/checkpoints/step-20 was trained on samples of [28,28,1], but the samples here are of [28,29,1]; use the "
      "data set that it was trained on (of image folders, with its --image-size), or another checkpoint");
}

TEST(SampleShape, RejectsInvalidShapesBriefly) {
  for (const Json& wrong : {Json("28"), Json(), Json::array(), Json(std::string(1'000'000, 'x'))})
    EXPECT_LT(rejection({{kSampleShape, wrong}}, {28, 28, 1}).size(), 300u);
}

TEST(SampleShape, IgnoresAnUnknownShape) {
  EXPECT_NO_THROW(check_sample_shape(Json::object(), {28, 28, 1}, "step-20"));
}

/// The record of `facts` in a checkpoint, with one member replaced.
Json record_with(const char* member, const Json& value) {
  Json facts = to_json(data::DatasetFacts{.name = "flowers", .shape = {4, 6, 3}, .class_names = {"rose", "tulip"}});
  facts[member] = value;
  return {{kDataset, facts}};
}

TEST(RecordedDataset, IsWhatWasSaved) {
  const data::DatasetFacts facts{.name = "flowers",
                                 .shape = {4, 6, 3},
                                 .class_names = {"rose", "tulip", "ünknown"},
                                 .mean = {0.1307f, 0.2f, 1.0f / 3},
                                 .std = {0.3081f, 0.1f, 0.7f}};
  const Json about = Json::parse(Json{{kDataset, to_json(facts)}}.dump());
  EXPECT_EQ(recorded_dataset(about, "step-20"), facts);
  EXPECT_EQ(recorded_dataset(Json::object(), "step-20"), std::nullopt) << "of an earlier version";
}

TEST(RecordedDataset, RejectsInvalidValues) {
  EXPECT_NO_THROW(recorded_dataset(record_with("mean", {0.1, 0.2, 0.3}), "step-20"));
  const std::pair<const char*, Json> wrong[] = {{"name", 3},
                                                {"shape", {4, 6}},
                                                {"shape", {4, 0, 3}},
                                                {"shape", {4, 6.5, 3}},
                                                {"shape", {4, 6, 1 << 17}},
                                                {"shape", "4x6x3"},
                                                {"class_names", Json::array()},
                                                {"class_names", {"rose", 1}},
                                                {"mean", {0.1, 0.2}},
                                                {"mean", {"a"}},
                                                {"mean", {1e300}},
                                                {"std", {0}},
                                                {"std", {-1}},
                                                {"std", nullptr}};
  for (const auto& [member, value] : wrong)
    EXPECT_THAT([&] { recorded_dataset(record_with(member, value), "run/step-20"); },
                ThrowsMessage<CheckpointError>(AllOf(HasSubstr("run/step-20"), HasSubstr(member))))
        << member << " " << value;
  EXPECT_THROW(recorded_dataset({{kDataset, 7}}, "step-20"), CheckpointError);
}

}  // namespace
}  // namespace gradring::train
