// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/run_files.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "tests/support/allocated_bytes.h"
#include "tests/train/view/runs/written_run.h"

namespace gradring::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ExportCsv : public ::testing::Test {
 protected:
  std::string csv(std::string_view event) {
    std::string text;
    warnings_ = export_csv(metrics_of(runs_.path("a")), event, [&text](std::string_view part) { text += part; });
    return text;
  }
  tests::WrittenRuns runs_;
  std::vector<std::string> warnings_;
};

TEST_F(ExportCsv, HasARowForEachRankOfARanksEvent) {
  runs_.write("a", {{.time = 1.5,
                     .event = RanksRecord{.step = 10,
                                          .steps = 10,
                                          .seconds = {0.25, 0.5},
                                          .data_wait = {0, 0.125},
                                          .exposed_communication = {0.5, 0},
                                          .memory = {8, 9}}}});
  EXPECT_EQ(csv("ranks"),
            "time,step,steps,rank,seconds,data_wait,exposed_communication,memory\r\n"
            "1.5,10,10,0,0.25,0.0,0.5,8.0\r\n"
            "1.5,10,10,1,0.5,0.125,0.0,9.0\r\n");
}

TEST_F(ExportCsv, QuotesWhatRfc4180Asks) {
  runs_.write("a", {{.time = 1, .event = FaultRecord{.step = 1, .rank = 0, .kind = "a,\"b\"\nc"}}});
  EXPECT_EQ(csv("fault"), "time,step,rank,kind\r\n1.0,1,0,\"a,\"\"b\"\"\nc\"\r\n");
}

TEST_F(ExportCsv, LeavesAbsentMembersEmptyAndWritesNullAsNan) {
  EvalRecord averaged{.step = 2, .epoch = 1, .accuracy = 0.5, .loss = std::nan(""), .samples = 4};
  averaged.ema_accuracy = 0.75;
  runs_.write("a", {{.time = 1, .event = EvalRecord{.step = 1, .epoch = 1}}, {.time = 2, .event = averaged}});
  EXPECT_THAT(csv("eval"),
              HasSubstr("seconds,ema_accuracy\r\n1.0,1,1,true,0.0,0.0,0,0.0,\r\n2.0,2,1,true,0.5,nan,4,0.0,0.75\r\n"));
}

TEST_F(ExportCsv, HasAColumnForEachOption) {
  runs_.write("a", {tests::start_at(1, {.command = {"gradring", "train"}, .config = {{"lr", "0.5"}}})});
  EXPECT_THAT(csv("header"), HasSubstr(",config.lr\r\n"));
  EXPECT_THAT(csv("header"), HasSubstr(R"("[""gradring"",""train""]")"));
}

TEST_F(ExportCsv, IgnoresACutLineWithAWarning) {
  const auto run = runs_.write("a", {tests::step_at(1, 1), tests::step_at(2, 2)});
  std::filesystem::resize_file(metrics_of(run), std::filesystem::file_size(metrics_of(run)) - 5);
  const std::string text = csv("train");
  EXPECT_EQ(std::ranges::count(text, '\n'), 2);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("line 2 is incomplete")));
}

TEST_F(ExportCsv, IgnoresLinesOfOtherTypesOrTooManyLevels) {
  const auto run = runs_.write("a", {});
  const std::string deep(100'000, '[');
  std::ofstream(metrics_of(run)) << R"({"event":5})"
                                 << "\n"
                                 << R"({"event":"train","time":1,"loss":)" << deep << std::string(deep.size(), ']')
                                 << "}\n"
                                 << to_line(tests::step_at(1, 1)) << "\n";
  EXPECT_EQ(std::ranges::count(csv("train"), '\n'), 2);
  EXPECT_EQ(warnings_.size(), 2u);
}

TEST_F(ExportCsv, HasBoundedMemory) {
  const auto run = runs_.write("a", {});
  {
    std::ofstream metrics(metrics_of(run));
    const std::string filler(1000, 'x');
    for (int line = 0; line < 2000; ++line)  // 2 MB of names, and 2,000 lines that are no event
      metrics << R"({"event":"train","time":1,"a)" << line << filler << "\":0}\nother\n";
    metrics << R"({"event":"ranks","time":1,"text":")" << std::string(1 << 18, 'x') << R"(","seconds":[0)";
    for (int rank = 1; rank < 500; ++rank) metrics << ",0";
    metrics << "]}\n";
  }
  for (const char* event : {"train", "ranks"}) {
    const std::size_t before = tests::allocated_bytes();
    tests::reset_peak_allocated_bytes();
    warnings_ = export_csv(metrics_of(run), event, [](std::string_view) {});
    EXPECT_LT(tests::peak_allocated_bytes() - before, 16u << 20) << event;
    EXPECT_LE(warnings_.size(), 12u);
  }
  csv("train");
  EXPECT_THAT(warnings_.back(), HasSubstr("have no column"));
}

TEST_F(ExportCsv, RecognizesWhatItWrote) {
  const auto run = runs_.write("a", {tests::start_at(1, {.config = {{"lr", "0.1"}}}),
                                     tests::step_at(2, 1),
                                     {.time = 3, .event = RanksRecord{.step = 1, .steps = 1, .seconds = {1, 2}}}});
  for (const char* event : {"header", "train", "ranks"}) {
    const std::string text = csv(event);
    EXPECT_TRUE(is_exported_csv(text)) << text;
    EXPECT_TRUE(is_exported_csv(text.substr(0, text.find(',') + 3))) << "the head of a long line";
  }
  for (const char* other : {"", "time", "time,temperature\r\n1,2\r\n", "step,time\r\n", "time,,step\r\n"})
    EXPECT_FALSE(is_exported_csv(other)) << other;
}

}  // namespace
}  // namespace gradring::train
