// SPDX-License-Identifier: Apache-2.0
// Fifty steps of the ConvNet by the program, loss by loss beside PyTorch's (tests/golden/make_convnet_50steps.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <ostream>

#include "kernels/runtime/cpu_level.h"
#include "tests/data/support/written_idx.h"
#include "tests/support/json.h"
#include "tests/support/safetensors.h"
#include "tests/support/sanitizer.h"
#include "tests/train/app/commands/support/workplace.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using kernels::CpuLevel;
using nlohmann::json;
using tests::ProgramEnd;
using tests::Words;
using tests::Workplace;

struct Case {
  std::string name;
  CpuLevel level;
  Words options;  ///< of 32 samples a step over all ranks
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const CpuLevel level : kernels::cpu_levels()) {
    std::string suffix = "_" + std::string(kernels::cpu_level_name(level));
    std::ranges::replace_if(
        suffix, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
    all.push_back({"one_rank" + suffix, level, {"--batch-size", "32"}});
    all.push_back({"two_ranks" + suffix, level, {"--batch-size", "16", "--nprocs", "2"}});
    all.push_back({"kernels_only" + suffix, level, {"--batch-size", "32", "--conv", "native", "--gemm", "strips"}});
  }
  return all;
}

class ReferenceLosses : public testing::TestWithParam<Case> {};

TEST_P(ReferenceLosses, MatchPyTorchForFiftySteps) {
  if (!tests::kSanitizer.empty()) GTEST_SKIP() << "fifty steps take too long under a sanitizer";
  if (GetParam().level > kernels::supported_cpu_level())
    GTEST_SKIP() << "this processor lacks " << kernels::cpu_level_name(GetParam().level);
  const auto golden = tests::read_golden("convnet_50steps");
  const auto images = golden.at("images_u8").as<std::uint8_t>();
  const auto labels = golden.at("labels").as<std::int64_t>();
  const auto losses = golden.at("losses").as<double>();
  ASSERT_EQ(losses.size(), 50u);

  const Workplace place;
  const auto samples = static_cast<std::uint32_t>(labels.size());
  for (const auto& [image_file, label_file] :
       {std::pair(tests::kTrainImages, tests::kTrainLabels), std::pair(tests::kTestImages, tests::kTestLabels)}) {
    place.folder().write(std::filesystem::path("data") / image_file, tests::idx_bytes({samples, 28, 28}, images));
    place.folder().write(std::filesystem::path("data") / label_file,
                         tests::idx_bytes({samples}, tests::Bytes(labels.begin(), labels.end())));
  }
  Words words = {"train", "--dataset", "mnist", "--data-dir",  "data", "--steps",   "50",  "--seed",     "0",   "--lr",
                 "1e-3",  "--device",  "cpu",   "--precision", "fp32", "--run-dir", "run", "--progress", "none"};
  words.insert(words.end(), GetParam().options.begin(), GetParam().options.end());
  const std::string level(kernels::cpu_level_name(GetParam().level));
  const ProgramEnd end = tests::run_program(place.gradring(words, {{kernels::kCpuLevelVariable, level}}));
  ASSERT_EQ(end.code, 0) << end.err;

  std::size_t step = 0;
  for (const std::string& line : tests::records_of(place.path("run/metrics.jsonl"))) {
    const json record = tests::parse_json(line);
    if (record.at("event") != "train") continue;
    ASSERT_LT(step, losses.size());
    EXPECT_NEAR(record.at("loss").get<double>(), losses[step], step < 20 ? 1e-4 : 1e-2) << "step " << step + 1;
    ++step;
  }
  EXPECT_EQ(step, losses.size());
}

INSTANTIATE_TEST_SUITE_P(Levels, ReferenceLosses, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace gradring
