// SPDX-License-Identifier: Apache-2.0
// Files of a run that others remove, replace or cut while it writes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temp_folder.h"
#include "tests/train/support/text_of.h"
#include "train/records/metrics/environment_error.h"
#include "train/records/metrics/metrics.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using tests::lines_of;
using tests::text_of;

constexpr auto kAtOnce = std::chrono::milliseconds(0);
constexpr auto kNever = std::chrono::hours(1);

StepRecord step(std::int64_t number) { return {.step = number, .epoch = 1, .loss = 2}; }

class LostMetrics : public ::testing::Test {
 protected:
  /// A header and steps 1 to 3.
  std::unique_ptr<JsonLinesSink> written(std::chrono::milliseconds moment) const {
    auto sink = std::make_unique<JsonLinesSink>(path_, moment);
    sink->event(RunHeader{.model = "convnet", .total_steps = 9});
    for (std::int64_t number : {1, 2, 3}) sink->event(step(number));
    return sink;
  }
  static auto is_header_after(int steps) {
    return AllOf(StartsWith(R"({"event":"header")"), HasSubstr(R"("model":"convnet")"),
                 HasSubstr(R"("resumed_from":)" + std::to_string(steps)));
  }
  static auto is_step(int number) { return HasSubstr(R"("step":)" + std::to_string(number) + ","); }

  tests::TempFolder folder_;
  fs::path path_ = folder_.path() / "metrics.jsonl";
};

TEST_F(LostMetrics, AreBegunAnewWithTheirHeaderAndReportedOnce) {
  const auto sink = written(kAtOnce);
  fs::remove(path_);
  ::testing::internal::CaptureStderr();
  sink->event(step(4));
  sink->event(step(5));
  sink->finish();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "gradring train: " + path_.string() + " was removed during the run: it is begun anew\n");
  EXPECT_THAT(lines_of(path_), ElementsAre(is_header_after(3), is_step(4), is_step(5)));
}

/// rm -r would find the directory not empty.
TEST_F(LostMetrics, AreBegunAnewOnlyAfterAMoment) {
  const auto sink = written(kNever);
  fs::remove(path_);
  sink->event(step(4));
  sink->event(step(5));
  EXPECT_FALSE(fs::exists(path_));
  sink->finish();
  EXPECT_THAT(lines_of(path_), ElementsAre(is_header_after(3), is_step(4), is_step(5)));
}

TEST_F(LostMetrics, ThatAreCutKeepTheirWholeLines) {
  const auto sink = written(kNever);
  fs::resize_file(path_, fs::file_size(path_) - 5);
  ::testing::internal::CaptureStderr();
  sink->event(step(4));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("was cut during the run"));
  EXPECT_THAT(lines_of(path_), ElementsAre(is_header_after(0), is_step(1), is_step(2), is_header_after(3), is_step(4)));
  fs::resize_file(path_, 0);
  sink->event(step(5));
  EXPECT_THAT(lines_of(path_), ElementsAre(is_header_after(4), is_step(5)));
}

TEST_F(LostMetrics, ThatAnotherFileReplacesGoOnInIt) {
  const auto sink = written(kAtOnce);
  fs::rename(path_, folder_.path() / "rotated");
  std::ofstream(path_) << "{\"event\":\"note\"}\nhalf a li";
  sink->event(step(4));
  EXPECT_THAT(lines_of(path_), ElementsAre(HasSubstr("note"), is_header_after(3), is_step(4)));
  EXPECT_EQ(lines_of(folder_.path() / "rotated").size(), 4u);
}

TEST_F(LostMetrics, AreBegunAnewByARollback) {
  const auto sink = written(kNever);
  fs::remove(path_);
  sink->rolled_back(2, 0);
  sink->event(step(3));
  EXPECT_THAT(lines_of(path_), ElementsAre(is_header_after(2), is_step(3)));
}

TEST_F(LostMetrics, OfARemovedFolderAreAnErrorAtTheEnd) {
  const fs::path run = folder_.path() / "run";
  fs::create_directory(run);
  const Directory directory(run);
  JsonLinesSink sink(directory.at(run / "metrics.jsonl"), kAtOnce);
  fs::remove_all(run);
  fs::create_directory(run);
  sink.event(step(1));
  EXPECT_THROW(sink.finish(), EnvironmentError);
  EXPECT_TRUE(fs::is_empty(run));
}

TEST_F(LostMetrics, AreFoundThroughALink) {
  fs::create_symlink("elsewhere", path_);
  const auto sink = written(kAtOnce);
  EXPECT_EQ(lines_of(folder_.path() / "elsewhere").size(), 4u);
}

TEST(LostLog, IsBegunAnewWithoutAHeader) {
  const tests::TempFolder folder;
  const fs::path path = folder.path() / "log";
  PatientLineFile log(path, {}, kAtOnce);
  log.append("one");
  fs::remove(path);
  log.append("two");
  EXPECT_EQ(text_of(path), "two\n");
}

TEST(RemoveIncompleteLine, LeavesWholeLines) {
  const tests::TempFolder folder;
  const fs::path path = folder.path() / "lines";
  const std::string long_part(200'000, 'x');
  for (const auto& [before, after] : {std::pair<std::string, std::string>("", ""),
                                      {"one\n", "one\n"},
                                      {"one\ntwo", "one\n"},
                                      {"half", ""},
                                      {"one\n" + long_part, "one\n"},
                                      {long_part, ""},
                                      {long_part + "\nhalf", long_part + "\n"}}) {
    std::ofstream(path) << before;
    remove_incomplete_line(path);
    EXPECT_EQ(text_of(path), after);
  }
  remove_incomplete_line(folder.path() / "none");
  EXPECT_FALSE(fs::exists(folder.path() / "none"));
}

}  // namespace
}  // namespace gradring::train
