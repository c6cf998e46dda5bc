// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/run_history.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/support/allocated_bytes.h"
#include "tests/support/temp_folder.h"
#include "train/records/metrics/environment_error.h"
#include "train/records/metrics/metrics.h"
#include "train/records/metrics/metrics_lines.h"

namespace gradring::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class History : public ::testing::Test {
 protected:
  tests::TempFolder folder_;
  std::filesystem::path path_ = folder_.path() / "metrics.jsonl";
};

TEST_F(History, HasEveryEventOfAFile) {
  JsonLinesSink sink(path_);
  sink.event(RunHeader{.model = "convnet"});
  for (std::int64_t step = 1; step <= 3; ++step) sink.event(StepRecord{.step = step});
  sink.event(RanksRecord{.step = 3});
  sink.event(EvalRecord{.step = 3});
  sink.event(CheckpointRecord{.step = 3});
  sink.event(RestartRecord{.attempt = 1});
  sink.event(FaultRecord{.rank = 1});
  EXPECT_FALSE(read_history(path_).has_ended);
  sink.event(EndRecord{.steps = 3});
  const RunHistory history = read_history(path_);
  EXPECT_EQ(history.headers.at(0).record.model, "convnet");
  EXPECT_EQ(history.steps.size(), 3u);
  EXPECT_EQ(history.steps.back().record.step, 3);
  EXPECT_EQ(history.ranks.size(), 1u);
  EXPECT_EQ(history.evals.size(), 1u);
  EXPECT_EQ(history.checkpoints.size(), 1u);
  EXPECT_EQ(history.restarts.size(), 1u);
  EXPECT_EQ(history.faults.at(0).record.rank, 1);
  EXPECT_EQ(history.ends.at(0).record.steps, 3);
  EXPECT_TRUE(history.has_ended);
  EXPECT_EQ(history.last_time, history.ends.at(0).time);
  EXPECT_THAT(history.warnings, IsEmpty());
}

TEST_F(History, IgnoresACutLineWithAWarning) {
  JsonLinesSink(path_).event(StepRecord{.step = 1});
  std::ofstream(path_, std::ios::app) << "other\n"
                                      << R"({"event":"train","time":1,"st)";
  const RunHistory history = read_history(path_);
  EXPECT_EQ(history.steps.size(), 1u);
  EXPECT_THAT(history.warnings,
              ElementsAre(HasSubstr("line 2 is not an event (it is not JSON)"), HasSubstr("line 3 is incomplete")));
}

TEST_F(History, NamesFileLineAndMemberThatCannotBe) {
  JsonLinesSink(path_).event(StepRecord{.step = 1});
  std::ofstream(path_, std::ios::app) << R"({"event":"end","time":1e300,"outcome":"finished"})" << '\n';
  const RunHistory history = read_history(path_);
  EXPECT_TRUE(history.ends.empty());
  EXPECT_THAT(history.warnings, ElementsAre(HasSubstr(path_.string() + ": line 2 is not an event (time is 1e+300, ")));
}

TEST_F(History, WarnsOfManyLinesOnce) {
  std::ofstream file(path_);
  for (int line = 0; line < 1000; ++line) file << "other\n";
  file << std::string(kMostLineBytes, ' ') << "no end\n" << std::flush;
  JsonLinesSink(path_).event(StepRecord{.step = 1});
  const RunHistory history = read_history(path_);
  EXPECT_EQ(history.steps.size(), 1u);
  ASSERT_THAT(history.warnings, SizeIs(11));
  EXPECT_THAT(history.warnings.back(), HasSubstr("991 more lines are ignored"));
}

TEST_F(History, DoesNotKeepALongLine) {
  std::ofstream(path_) << "\n";
  std::filesystem::resize_file(path_, std::uintmax_t{256} << 20);  // no line break
  const std::size_t before = tests::allocated_bytes();
  tests::reset_peak_allocated_bytes();
  EXPECT_THAT(read_history(path_).warnings,
              ElementsAre(HasSubstr("line 1"), HasSubstr("line 2 is longer than 16 MiB")));
  EXPECT_LT(tests::peak_allocated_bytes() - before, 4 * kMostLineBytes);
}

/// Reading it to its end would take minutes.
TEST_F(History, GivesUpALineOfMoreThan256MiB) {
  std::ofstream(path_) << "\n";
  std::filesystem::resize_file(path_, std::uintmax_t{1} << 40);
  EXPECT_THAT([&] { read_history(path_); },
              testing::ThrowsMessage<EnvironmentError>(HasSubstr("line 2 is longer than 256 MiB")));
}

TEST_F(History, CannotBeReadFromAMissingFileOrAFolder) {
  EXPECT_THROW(read_history(folder_.path() / "none"), EnvironmentError);
  EXPECT_THROW(read_history(folder_.path()), EnvironmentError);
}

}  // namespace
}  // namespace gradring::train
