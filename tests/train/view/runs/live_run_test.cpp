// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/live_run.h"

#include <gmock/gmock.h>

#include "tests/train/support/text_of.h"
#include "tests/train/view/runs/written_run.h"
#include "train/core/setup/run_lock.h"
#include "train/records/metrics/metrics.h"
#include "train/view/runs/live_frame.h"
#include "train/view/runs/text_table.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tests::start_at;
using tests::step_at;

/// A run of two ranks that holds its lock.
class Live : public ::testing::Test {
 protected:
  static constexpr double kStart = 1000;
  Live()
      : path_(runs_.write("run", {start_at(kStart, {.ranks = 2, .global_batch = 64})})),
        lock_(path_, {}),
        live_(path_) {}

  void write(const std::vector<TimedEvent>& events) const { runs_.write("run", events); }
  void log(int rank, const std::string& line) const {
    std::ofstream(log_file(path_, rank), std::ios::app) << "2026-11-24 07:00:00  " << line << '\n';
  }
  std::vector<RankState> states(double now = wall_time()) {
    live_.poll(now);
    std::vector<RankState> all;
    for (const RankRow& row : live_.ranks(now)) all.push_back(row.state);
    return all;
  }
  static TimedEvent ranks_at(double time, std::vector<double> seconds, std::vector<double> waits) {
    return {.time = time,
            .event = RanksRecord{.step = 5,
                                 .steps = 5,
                                 .seconds = std::move(seconds),
                                 .data_wait = {0, 0},
                                 .exposed_communication = std::move(waits),
                                 .memory = {1 << 20, 2 << 20}}};
  }

  tests::WrittenRuns runs_;
  fs::path path_;
  RunLock lock_;
  LiveRun live_;
};

TEST_F(Live, RanksStartAndTrain) {
  EXPECT_THAT(states(), ElementsAre(RankState::starting, RankState::starting));
  write({step_at(kStart + 1, 1, 2), step_at(kStart + 3, 2, 1)});
  EXPECT_THAT(states(), ElementsAre(RankState::training, RankState::training));
  EXPECT_EQ(live_.pace(), 0.5);
  EXPECT_EQ(live_.time_left(), 98 / 0.5);
  EXPECT_EQ(live_.run().figures.last_loss, 1);
}

TEST_F(Live, RanksEvaluateAfterTheLastStepOfAnEpoch) {
  write({step_at(kStart + 1, 9), step_at(kStart + 2, 10)});
  EXPECT_THAT(states(wall_time() + 3600), ElementsAre(RankState::evaluating, RankState::evaluating));
  write({{.time = kStart + 3, .event = EvalRecord{.step = 10, .epoch = 1}}});
  EXPECT_THAT(states(), ElementsAre(RankState::training, RankState::training));
}

TEST_F(Live, RanksWithoutASignOfLifeAreStalled) {
  write({step_at(kStart + 1, 1), step_at(kStart + 2, 2)});
  EXPECT_THAT(states(wall_time() + 60), ElementsAre(RankState::stalled, RankState::stalled));
}

TEST_F(Live, TheRankForWhichOthersWaitIsSlow) {
  write({step_at(kStart + 1, 1), ranks_at(kStart + 2, {0.25, 0.25}, {0.125, 0})});
  EXPECT_THAT(states(), ElementsAre(RankState::training, RankState::slow));
  const auto rows = live_.ranks(wall_time());
  EXPECT_EQ(rows[1].note, "+125.0 ms a step");
  EXPECT_EQ(rows[0].communication, 0.5);
  EXPECT_EQ(rows[1].steps_per_second, 4);
  EXPECT_EQ(rows[1].memory, 2 << 20);
}

TEST_F(Live, ARankWhoseLogIsSilentAboutTheEndIsLost) {
  write({step_at(kStart + 1, 1)});
  log(0, "rank 0 of 2, process 1: CPU by cpu");
  log(1, "rank 1 of 2, process 2: CPU by cpu");
  log(1, "Train: 1 [   1/10 ( 10%)]  Loss: 2.1250 (2.2500)  20.3it/s, 2599/s  LR: 1.0e-03  Data: 0.0000");
  log(0, "training ended: rank 1 is gone");
  write({{.time = kStart + 2, .event = EndRecord{.outcome = Outcome::failed, .reason = "rank 1 is gone"}}});
  lock_.release();
  EXPECT_THAT(states(), ElementsAre(RankState::failed, RankState::lost));
  EXPECT_EQ(live_.ranks(0)[0].note, "rank 1 is gone");
  EXPECT_EQ(live_.ranks(0)[1].loss, 2.125);
}

TEST_F(Live, ForgetsTheEndInALogWhenTheRanksStartAgain) {
  write({step_at(kStart + 1, 1)});
  log(0, "training ended: rank 1 is gone");
  EXPECT_THAT(states(), ElementsAre(RankState::failed, RankState::training));
  log(0, "rank 0 of 2, process 3: CPU by cpu");
  EXPECT_THAT(states(), ElementsAre(RankState::training, RankState::training));
}

TEST_F(Live, GoesBackWithARollback) {
  write({step_at(kStart + 1, 1, 1), step_at(kStart + 2, 2, 2), step_at(kStart + 3, 3, 3)});
  states();
  truncate_metrics(metrics_of(path_), 1, 0);
  states();
  EXPECT_EQ(live_.run().figures.steps, 1);
  EXPECT_EQ(live_.run().history.steps.size(), 1u);
  EXPECT_EQ(live_.run().figures.last_loss, 1);
}

TEST_F(Live, KeepsFiguresOfALongRunAndFewEvents) {
  std::vector<TimedEvent> events;
  for (std::int64_t step = 1; step <= 5000; ++step) {
    events.push_back(step_at(kStart + static_cast<double>(step), step, static_cast<double>(step)));
    events.push_back({.time = kStart + static_cast<double>(step),
                      .event = EvalRecord{.step = step, .epoch = 1, .accuracy = 1.0 / static_cast<double>(step)}});
  }
  write(events);
  live_.poll(wall_time());
  const auto whole = open_run(path_);
  EXPECT_EQ(whole.history.steps.size(), 5000u);
  EXPECT_LT(live_.run().history.steps.size(), 2 * LiveRun::kKeptEvents);
  EXPECT_LT(live_.run().history.evals.size(), 2 * LiveRun::kKeptEvents);
  EXPECT_EQ(live_.run().figures.test.best_accuracy, 1);
  EXPECT_EQ(live_.run().figures.test.best_step, 1);
  EXPECT_EQ(live_.run().figures.samples_per_second, whole.figures.samples_per_second);
  EXPECT_EQ(live_.run().figures.seconds, 5000);
  const std::vector<double> losses = live_.losses();
  ASSERT_LE(losses.size(), MeanCurve::kMostMeans);
  EXPECT_EQ(losses.front(), (1 + 2 + 3 + 4) / 4.0);
  EXPECT_EQ(losses.back(), (4997 + 4998 + 4999 + 5000) / 4.0);
}

TEST_F(Live, FrameFitsAnyTerminal) {
  std::vector<double> times(40, 0.25), waits(40, 0.125);
  waits[30] = 0;
  std::vector<TimedEvent> events = {start_at(kStart, {.ranks = 40})};
  for (std::int64_t step = 1; step <= 9; ++step) events.push_back(step_at(kStart + static_cast<double>(step), step));
  events.push_back(ranks_at(kStart + 9, times, waits));
  events.push_back({.time = kStart + 10, .event = EvalRecord{.step = 9, .epoch = 1, .accuracy = 0.5}});
  write(events);
  live_.poll(wall_time());
  for (const TerminalSize size :
       {TerminalSize{50, 120}, TerminalSize{24, 80}, TerminalSize{10, 40}, TerminalSize{3, 5}, TerminalSize{1, 1}}) {
    const auto lines = frame_of(live_, wall_time(), size, Glyphs::utf8);
    EXPECT_LT(lines.size(), std::max<std::size_t>(size.rows, 2));
    for (const FrameLine& line : lines) EXPECT_LE(columns_of(line.text), size.columns) << line.text;
  }
  std::string text;
  for (const FrameLine& line : frame_of(live_, wall_time(), {24, 80}, Glyphs::utf8)) text += line.text + "\n";
  EXPECT_THAT(text, HasSubstr("  30 ")) << "the slow rank is shown though not all fit";
  EXPECT_THAT(text, HasSubstr("more ranks"));
  EXPECT_THAT(text, HasSubstr("accuracy 50.00 %"));
  EXPECT_THAT(line_of(live_, wall_time()), HasSubstr("rank 30 slow: +125.0 ms a step"));
}

}  // namespace
}  // namespace gradring::train
