// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>

#include "kernels/base/file.h"
#include "tests/support/temp_folder.h"
#include "tests/train/support/text_of.h"
#include "train/records/metrics/terminal_look.h"

namespace gradring::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using tests::lines_of;
using tests::text_of;

const EvalRecord kEval{.epoch = 2, .accuracy = 0.9712, .loss = 0.5, .samples = 10000};
constexpr std::string_view kEvalText = "Epoch 2: test accuracy 97.12 % (9712 of 10000), loss 0.5000";

/// `steps` steps of epoch 2, each with 10 samples in 0.1 s; losses 1, 2, 3, ...
void train_an_epoch(MetricsSink& sink, std::int64_t steps) {
  for (std::int64_t i = 0; i < steps; ++i)
    sink.event(StepRecord{.step = 100 + i,
                          .epoch = 2,
                          .step_of_epoch = i,
                          .steps_in_epoch = steps,
                          .loss = static_cast<double>(i + 1),
                          .learning_rate = 0.001,
                          .samples = 10,
                          .duration = std::chrono::milliseconds(100)});
}

class Progress : public ::testing::Test {
 protected:
  tests::TempFolder folder_;
  std::filesystem::path path_ = folder_.path() / "out";
  UniqueFd fd_{::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
  Console out_{fd_.get()};
};

TEST_F(Progress, ShowsNoMeanOfLossesThatAreNotFinite) {
  const auto progress = make_progress(ProgressStyle::plain, out_);
  for (const double loss : {std::nan(""), 3e20, 0.5})
    progress->event(StepRecord{.step_of_epoch = 0, .steps_in_epoch = 1, .loss = loss});
  EXPECT_THAT(lines_of(path_), ElementsAre(HasSubstr("Loss: nan (-)"), HasSubstr("Loss: 3.000e+20 (3.000e+20)"),
                                           HasSubstr("Loss: 0.5000 (0.5000)")));
}

TEST_F(Progress, NamesSkippedStepAndParameter) {
  for (const auto style : {ProgressStyle::plain, ProgressStyle::bar}) {
    const auto progress = make_progress(style, out_);
    train_an_epoch(*progress, 3);
    StepRecord record{.step = 103, .epoch = 2, .step_of_epoch = 3, .steps_in_epoch = 9, .loss = std::nan("")};
    record.skipped = true;
    record.loss_scale = 65536;
    progress->event(record);
    record.non_finite = "fc_layers.0.weight";
    progress->event(record);
    record.step = 105;
    record.ends_run = true;
    progress->event(record);
    progress->event(StepRecord{.step = 104, .epoch = 2, .step_of_epoch = 8, .steps_in_epoch = 9, .loss = 6});
  }
  EXPECT_THAT(text_of(path_), HasSubstr("Step 103 is skipped: a gradient is not finite (loss scale 65536)\n"));
  EXPECT_THAT(text_of(path_),
              HasSubstr("Step 103 is skipped: the gradient of fc_layers.0.weight is not finite (loss scale 65536)\n"));
  EXPECT_THAT(text_of(path_), testing::Not(HasSubstr("Step 105"))) << "the error reports it";
  EXPECT_THAT(text_of(path_), HasSubstr("Loss: 6.0000 (3.0000)")) << "the mean ignores NaN";
}

TEST_F(Progress, PlainWritesFewLinesPerEpoch) {
  const auto progress = make_progress(ProgressStyle::plain, out_);
  train_an_epoch(*progress, 1000);
  progress->event(kEval);
  const auto lines = lines_of(path_);
  ASSERT_THAT(lines, SizeIs(7));
  EXPECT_EQ(lines[0], "Train: 2 [   1/1000 (  0%)]  Loss: 1.0000 (1.0000)  10.0it/s, 100/s  LR: 1.0e-03  Data: 0.0000");
  EXPECT_EQ(lines[1],
            "Train: 2 [ 200/1000 ( 20%)]  Loss: 200.0000 (100.5000)  10.0it/s, 100/s  LR: 1.0e-03  Data: 0.0000");
  EXPECT_THAT(lines[5], StartsWith("Train: 2 [1000/1000 (100%)]  Loss: 1000.0000 (500.5000)"));
  EXPECT_EQ(lines[6], kEvalText);
}

TEST_F(Progress, PlainResetsEachEpoch) {
  const auto progress = make_progress(ProgressStyle::plain, out_);
  train_an_epoch(*progress, 3);
  train_an_epoch(*progress, 1);
  EXPECT_THAT(lines_of(path_).back(), HasSubstr("[   1/1 (100%)]  Loss: 1.0000 (1.0000)"));
}

TEST_F(Progress, EvaluationReplacesBar) {
  const auto progress = make_progress(ProgressStyle::bar, out_);
  train_an_epoch(*progress, 50);
  EXPECT_THAT(text_of(path_), Not(HasSubstr("\n")));
  EXPECT_THAT(text_of(path_), StartsWith("\r\033[KEpoch 2: "));
  EXPECT_THAT(text_of(path_), HasSubstr("Epoch 2: 100%|#"));
  EXPECT_THAT(text_of(path_), EndsWith("| 50/50 [00:05<00:00, 10.0it/s, loss=25.5000]"));
  progress->event(kEval);
  EXPECT_THAT(text_of(path_), EndsWith("\r\033[K" + std::string(kEvalText) + "\n"));
}

TEST_F(Progress, BarFits80ColumnsWithoutTerminal) {
  const auto progress = make_progress(ProgressStyle::bar, out_);
  train_an_epoch(*progress, 9999);
  const std::string text = text_of(path_);
  EXPECT_LT(text.size() - text.rfind("\033[K") - 3, 80u);
}

/// A terminal whose width a test sets.
class Pty {
 public:
  explicit Pty(unsigned short columns) {
    int master = -1, slave = -1;
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    if (::openpty(&master, &slave, nullptr, nullptr, &size) != 0) throw std::runtime_error("there is no pty");
    master_ = UniqueFd(master);
    slave_ = UniqueFd(slave);
  }
  void resize(unsigned short columns) const {
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ASSERT_EQ(::ioctl(master_.get(), TIOCSWINSZ, &size), 0);
  }
  int fd() const { return slave_.get(); }
  /// What was written since the last call. It comes in pieces, the last of them a mark.
  std::string take() const {
    constexpr char kEnd = '\0';
    EXPECT_EQ(::write(slave_.get(), &kEnd, 1), 1);
    std::string text;
    for (char next = 0; ::read(master_.get(), &next, 1) == 1 && next != kEnd;) text += next;
    return text;
  }

 private:
  UniqueFd master_, slave_;
};

/// The last step of an epoch of 938, at 1 ms a step, whose bar is drawn at once.
StepRecord last_step() {
  return {.step = 938,
          .epoch = 12,
          .step_of_epoch = 937,
          .steps_in_epoch = 938,
          .loss = 0.2131,
          .samples = 64,
          .duration = std::chrono::milliseconds(1)};
}

TEST(ProgressBar, StaysOnOneLineOfAnyTerminal) {
  for (const unsigned short columns : {200, 80, 60, 50, 40, 30, 20, 10, 4}) {
    const Pty pty(columns);
    Console out(pty.fd());
    const auto progress = make_progress(ProgressStyle::bar, out);
    progress->event(last_step());
    const std::string text = pty.take();
    ASSERT_THAT(text, StartsWith("\r\033[K"));
    const std::string bar = text.substr(4);
    EXPECT_LT(bar.size(), columns) << bar;
    EXPECT_THAT(bar, StartsWith(std::string("Epoch 12: 100%").substr(0, columns - 1u)));
    EXPECT_THAT(bar, Not(HasSubstr("\n")));
    if (columns >= 50) {
      EXPECT_THAT(bar, AllOf(HasSubstr("|#"), HasSubstr("938/938"), HasSubstr("loss=0.2131")));
    }
    if (columns >= 80) {
      EXPECT_THAT(bar, HasSubstr("[00:00<00:00, 1000.0it/s, loss=0.2131]"));
    }
  }
}

TEST(ProgressBar, ClearsWhatANarrowerTerminalHasWrapped) {
  const Pty pty(80);
  Console out(pty.fd());
  const auto progress = make_progress(ProgressStyle::bar, out);
  progress->event(last_step());
  EXPECT_GT(pty.take().size(), 4u + 60u);
  pty.resize(30);
  progress->event(last_step());
  EXPECT_THAT(pty.take(), StartsWith("\r\033[2A\033[JEpoch 12")) << "three rows of 30 columns";
  progress->event(last_step());
  EXPECT_THAT(pty.take(), StartsWith("\r\033[KEpoch 12")) << "one row again";
  pty.resize(10);
  progress->event(kEval);
  EXPECT_THAT(pty.take(), AllOf(StartsWith("\r\033[2A\033[JEpoch 2"), EndsWith("\r\n")));
}

TEST(ProgressBar, IsForTerminalsThatMoveTheirCursor) {
  const Pty pty(80);
  const std::string before = std::getenv("TERM") ? std::getenv("TERM") : "";
  for (const auto& [term, begin] : {std::pair("xterm", "\r\033[K"), std::pair("dumb", "Train: 12 ")}) {
    ::setenv("TERM", term, 1);
    Console out(pty.fd());
    make_progress(ProgressStyle::automatic, out)->event(last_step());
    EXPECT_THAT(pty.take(), StartsWith(begin)) << term;
  }
  ::setenv("TERM", "xterm", 1);
  EXPECT_EQ(TextLook(pty.fd()).dim("a"), "\033[2ma\033[0m");
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_EQ(TextLook(pty.fd()).dim("a"), "a");
  ::unsetenv("NO_COLOR");
  EXPECT_EQ(TextLook(-1).dim("a"), "a");
  ::setenv("GRADRING_COLOR", "always", 1);
  EXPECT_EQ(TextLook(-1).dim("a"), "\033[2ma\033[0m");
  // --color never, and Open MPI, which gives ranks a terminal even where mpirun writes to a file.
  for (const auto& [name, value] : {std::pair("GRADRING_COLOR", "never"), {"OMPI_COMM_WORLD_RANK", "0"}}) {
    ::setenv(name, value, 1);
    EXPECT_EQ(TextLook(pty.fd()).dim("a"), "a") << name;
    Console out(pty.fd());
    make_progress(ProgressStyle::automatic, out)->event(last_step());
    EXPECT_THAT(pty.take(), StartsWith("Train: 12 ")) << name;
    ::unsetenv(name);
  }
  ::setenv("TERM", before.c_str(), 1);
}

TEST_F(Progress, NamesTheSplitOfAnEvaluation) {
  const auto progress = make_progress(ProgressStyle::plain, out_);
  EvalRecord eval = kEval;
  eval.split = kValidationSplit;
  progress->event(eval);
  EXPECT_THAT(text_of(path_), StartsWith("Epoch 2: validation accuracy 97.12 %"));
}

TEST_F(Progress, IncompleteBarEndsItsLine) {
  {
    const auto progress = make_progress(ProgressStyle::bar, out_);
    progress->event(StepRecord{.steps_in_epoch = 5, .samples = 1});
    EXPECT_THAT(text_of(path_), Not(EndsWith("\n")));
  }
  EXPECT_THAT(text_of(path_), EndsWith("]\n"));
}

TEST_F(Progress, CompleteBarAddsNothing) {
  make_progress(ProgressStyle::bar, out_)->event(kEval);
  EXPECT_THAT(text_of(path_), EndsWith("0.5000\n"));
  EXPECT_EQ(std::ranges::count(text_of(path_), '\n'), 1);
}

TEST_F(Progress, AutoIsPlainWithoutTerminal) {
  const auto progress = make_progress(ProgressStyle::automatic, out_);
  train_an_epoch(*progress, 1);
  EXPECT_THAT(text_of(path_), StartsWith("Train: 2 "));
}

TEST_F(Progress, NoneWritesNothing) {
  const auto progress = make_progress(ProgressStyle::none, out_);
  train_an_epoch(*progress, 5);
  progress->event(kEval);
  EXPECT_EQ(text_of(path_), "");
}

TEST(MetricsFan, DestroysSinksInOrder) {
  class Sink final : public MetricsSink {
   public:
    Sink(int name, std::vector<int>& gone) : name_(name), gone_(gone) {}
    ~Sink() override { gone_.push_back(name_); }
    void event(const RunEvent&) override {}
    void remark(const std::string&) override {}

   private:
    int name_;
    std::vector<int>& gone_;
  };
  std::vector<int> gone;
  {
    MetricsFan fan;
    for (const int name : {1, 2, 3}) fan.add(std::make_unique<Sink>(name, gone));
  }
  EXPECT_THAT(gone, ElementsAre(1, 2, 3));
}

TEST_F(Progress, RankLogBeginsLinesWithTime) {
  const auto log_path = folder_.path() / "rank_1.log";
  RankLog log(log_path);
  log.say("hello");
  train_an_epoch(log, 1);
  log.event(kEval);
  constexpr const char* kTime = R"([0-9]+-[0-9]+-[0-9]+ [0-9]+:[0-9]+:[0-9]+  )";
  EXPECT_THAT(lines_of(log_path),
              ElementsAre(MatchesRegex(kTime + std::string("hello")), MatchesRegex(kTime + std::string("Train: 2 .*")),
                          MatchesRegex(kTime + std::string("Epoch 2: .*"))));
}

}  // namespace
}  // namespace gradring::train
