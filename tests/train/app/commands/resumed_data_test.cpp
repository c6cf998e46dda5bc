// SPDX-License-Identifier: Apache-2.0
// Runs whose data changes between two starts, by the program that was built.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "data/images/image.h"
#include "tests/data/support/written_idx.h"
#include "tests/data/support/written_png.h"
#include "tests/train/app/commands/support/run_directories.h"
#include "tests/train/support/sealed_meta.h"

namespace gradring {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::Bytes;
using tests::joined;
using tests::ProgramEnd;
using tests::short_training;
using tests::Words;

constexpr const char* kOther = "was saved by a training with another training set: the SHA-256 of its samples was ";

class ResumedData : public tests::RunDirectories {
 protected:
  static constexpr std::size_t kSide = 28;

  void SetUp() override {
    std::iota(order_.begin(), order_.end(), 0);
    write(tests::kTrainImages, tests::kTrainLabels);
  }
  /// The samples in their order: no two are equal.
  void write(const char* images, const char* labels) const {
    Bytes pixels, classes;
    for (const int sample : order_) {
      for (std::size_t i = 0; i < kSide * kSide; ++i)
        pixels.push_back(static_cast<std::uint8_t>((static_cast<std::size_t>(sample) * 37 + i * 5) % 256));
      classes.push_back(static_cast<std::uint8_t>(sample % 10));
    }
    const auto count = static_cast<std::uint32_t>(order_.size());
    place_.folder().write(fs::path("data") / images, tests::idx_bytes({count, kSide, kSide}, pixels));
    place_.folder().write(fs::path("data") / labels, tests::idx_bytes({count}, classes));
  }
  /// As an array that was exported again, or a folder in which a file was renamed.
  void reorder() {
    std::ranges::reverse(order_);
    write(tests::kTrainImages, tests::kTrainLabels);
  }
  ProgramEnd train(const char* steps, const Words& more = {}) const {
    return place_.run(joined(short_training({"--steps", steps, "--resume", "auto", "--progress", "plain"}), more));
  }
  void expect_success(const ProgramEnd& end) const { EXPECT_EQ(end.code, 0) << end.err; }
  void expect_refused(const ProgramEnd& end, const char* why) const {
    EXPECT_EQ(end.code, 4) << end.err << end.out;
    EXPECT_THAT(end.err, AllOf(HasSubstr(kOther), HasSubstr(why),
                               HasSubstr("resume with the files that it was trained"), Not(HasSubstr("--normalize"))));
    EXPECT_EQ(end.err.find(kOther), end.err.rfind(kOther)) << "once for all ranks: " << end.err;
  }
  /// The newest checkpoint as versions wrote it that did not know the data.
  void forget_data() const {
    const fs::path meta = run() / "checkpoints" / fs::read_symlink(run() / "checkpoints/latest") / "meta.json";
    const std::string text =
        tests::forged(tests::text_of(meta), [](auto& json) { json["about"].erase("data_sha256"); });
    place_.folder().write(fs::relative(meta, place_.folder().path()), Bytes(text.begin(), text.end()));
  }

  std::vector<int> order_ = std::vector<int>(64);  // 8 steps an epoch
};

TEST_F(ResumedData, WithinAnEpochMustBeTheSame) {
  expect_success(train("3"));
  expect_success(train("4"));
  reorder();
  for (const char* ranks : {"1", "2"})
    expect_refused(train("8", {"--nprocs", ranks, "--global-batch", "8", "--batch-size", "4"}),
                   "it was saved in epoch 1, after sample 32, and which samples follow is not known");
  reorder();
  expect_success(train("8"));
}

TEST_F(ResumedData, WithAValidationSetMustBeTheSame) {
  const Words split = {"--val-split", "0.25"};  // 6 steps an epoch
  expect_success(train("6", split));
  const Words validate = {"eval", "run", "--split", "validation", "--json"};
  const auto recorded = [&] { return tests::parse_json(place_.run(validate).out)["recorded_accuracy"]; };
  EXPECT_TRUE(recorded().is_number());
  reorder();
  const char* const why = "samples that were trained on could be in the validation set";
  expect_refused(train("12", split), why);
  const ProgramEnd evaluated = place_.run(validate);
  EXPECT_EQ(evaluated.code, 4) << evaluated.out;
  EXPECT_THAT(evaluated.err, HasSubstr("mnist has other training samples than the training had"));
  order_.push_back(64);
  write(tests::kTrainImages, tests::kTrainLabels);
  expect_refused(train("12", split), why);
  order_.pop_back();
  reorder();
  expect_success(train("12", split));
  EXPECT_TRUE(recorded().is_number());
}

TEST_F(ResumedData, AtTheEndOfAnEpochMayChange) {
  expect_success(train("8"));
  reorder();
  const ProgramEnd end = train("12");
  expect_success(end);
  EXPECT_THAT(end.out, HasSubstr(kOther));
  expect_success(train("16"));
  EXPECT_THAT(train("18").out, Not(HasSubstr(kOther))) << "the run is bound to its new data";
}

/// The pixels' mean says that the data has changed; following an advice must not hide it.
TEST_F(ResumedData, IsNotHiddenByItsNormalization) {
  const Words dataset = {"--normalize", "dataset"};
  expect_success(train("3", dataset));
  order_.front() = 200;
  write(tests::kTrainImages, tests::kTrainLabels);
  expect_refused(train("8", dataset), "after sample 24");
  forget_data();
  const ProgramEnd unknown = train("8", dataset);
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("resume with its --normalize, and with the files that it was trained on"));
  order_.front() = 0;
  write(tests::kTrainImages, tests::kTrainLabels);
  expect_success(train("8", dataset));

  order_.front() = 200;
  write(tests::kTrainImages, tests::kTrainLabels);
  const ProgramEnd at_end = train("12", dataset);
  EXPECT_EQ(at_end.code, 2);
  const std::string head = "resume with --normalize ";
  const std::size_t begin = at_end.err.find(head) + head.size();
  const ProgramEnd advised =
      train("12", {"--normalize", at_end.err.substr(begin, at_end.err.find(',', begin) - begin)});
  expect_success(advised);
  EXPECT_THAT(advised.out, HasSubstr(kOther));
}

TEST_F(ResumedData, OfEarlierVersionsResume) {
  expect_success(train("3"));
  forget_data();
  reorder();
  const ProgramEnd end = train("8");
  expect_success(end);
  EXPECT_THAT(end.out, Not(HasSubstr(kOther)));
}

TEST_F(ResumedData, OfTheTestSetMayChange) {
  expect_success(train("8"));
  const Words evaluate = {"eval", "run/checkpoints/step-8", "--json"};
  EXPECT_TRUE(tests::parse_json(place_.run(evaluate).out).contains("recorded_accuracy"));
  order_.resize(32);
  write(tests::kTestImages, tests::kTestLabels);
  EXPECT_FALSE(tests::parse_json(place_.run(evaluate).out).contains("recorded_accuracy")) << "of other samples";
  const ProgramEnd end = train("9");
  expect_success(end);
  EXPECT_THAT(end.out, HasSubstr("was saved by a training with another test set"));
}

TEST_F(ResumedData, OfAFolderChangesWithAName) {
  if (data::png_library().empty()) GTEST_SKIP() << "built without libpng";
  for (const char* split : {"train", "test"})
    for (const char* name : {"a", "b"})
      for (std::uint32_t i = 0; i < 6; ++i) {
        tests::WrittenPng image{.width = 30, .height = 30, .colour = tests::WrittenPng::rgb, .rows = {}};
        for (std::uint32_t k = 0; k < 30 * 30 * 3; ++k) image.rows.push_back(static_cast<std::uint8_t>(k * i + *name));
        place_.folder().write(fs::path("d") / split / name / (std::to_string(i) + ".png"), image.bytes());
      }
  const auto resumed = [&](const char* steps, const Words& more = {}) {
    return place_.run(joined({"train", "--dataset", "folder", "--data-dir", "d", "--image-size", "28", "--batch-size",
                              "4", "--device", "cpu", "--run-dir", "run", "--resume", "auto", "--steps", steps},
                             more),
                      {{"GRADRING_CACHE_DIR", place_.path("cache").string()}});
  };
  const fs::path b = place_.path("d/train/b");
  expect_success(resumed("2", {"--normalize", "half"}));
  fs::rename(b / "5.png", b / "00.png");
  expect_refused(resumed("3", {"--normalize", "half"}), "after sample 8");
  fs::rename(b / "00.png", b / "5.png");
  expect_refused(resumed("3", {"--normalize", "half", "--resize", "30"}), "--resize count");
  expect_success(resumed("3", {"--normalize", "half"}));
}

}  // namespace
}  // namespace gradring
