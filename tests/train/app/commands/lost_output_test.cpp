// SPDX-License-Identifier: Apache-2.0
// Standard output that cannot be written: a reader that has closed its end, a full disk.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>
#include <sstream>
#include <stdexcept>

#include "data/images/image.h"
#include "kernels/base/file.h"
#include "tests/data/support/written_png.h"
#include "tests/support/json.h"
#include "tests/train/app/commands/support/in_shell.h"
#include "tests/train/app/commands/support/trained.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tests::in_shell;
using tests::joined;
using tests::ProgramEnd;
using tests::Words;
using tests::Workplace;

struct WithoutReader {
  bool of_stderr = false;        ///< nobody reads stderr either
  bool sigpipe_ignored = false;  ///< as a service manager may start its programs
};

/// The reader of standard output closes its end before the program begins.
ProgramEnd run_without_reader(const Workplace& place, const Words& words, const WithoutReader& how = {}) {
  const std::string program = std::string("\"$@\" ") + (how.of_stderr ? "2>&1" : "");
  const std::string trap = how.sigpipe_ignored ? "trap '' PIPE; " : "";
  return tests::run_program(
      in_shell(place.gradring(words), "rm -f closed; { while [ ! -e closed ]; do sleep 0.01; done; " + trap + program +
                                          "; echo $? > code; } | { exec <&-; : > closed; }; exit $(cat code)"));
}

ProgramEnd run_on_full_disk(const Workplace& place, const Words& words) {
  return tests::run_program(in_shell(place.gradring(words), "exec \"$@\" > /dev/full"));
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++found;
  return found;
}

/// What a benchmark says of a busy machine is no matter of its output.
std::string without_load_warning(const std::string& text) {
  std::istringstream lines(text);
  std::string rest;
  for (std::string line; std::getline(lines, line);)
    if (line.find("warning: the machine is loaded") == line.npos) rest += line + '\n';
  return rest;
}

constexpr const char* kBrokenPipe = "cannot write standard output: Broken pipe";
constexpr const char* kNoSpace = "cannot write standard output: No space left on device";

Words training(const Words& more = {}) {
  return joined(tests::short_training({"--steps", "20", "--epochs", "9", "--progress", "plain"}), more);
}

class LostOutput : public ::testing::Test {
 protected:
  void expect_trained_to_the_end() const {
    const auto summary = tests::parse_json(tests::text_of(place_.path("run/summary.json")));
    EXPECT_EQ(summary.at("steps"), 20);
    EXPECT_TRUE(std::filesystem::exists(place_.path("run/checkpoints/step-20")));
  }
  std::string log() const { return tests::text_of(place_.path("run/logs/rank_0.log")); }

  Workplace place_;
};

TEST_F(LostOutput, OfATrainingWithoutAReaderIsReportedOnceAndTrainingGoesOn) {
  for (const char* progress : {"plain", "bar"}) {
    const ProgramEnd end = run_without_reader(place_, training({"--progress", progress}));
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_EQ(count(end.err, kBrokenPipe), 1u) << end.err;
    EXPECT_THAT(end.err, HasSubstr("training continues, see "));
    EXPECT_EQ(count(log(), kBrokenPipe), 1u) << log();
    expect_trained_to_the_end();
    std::filesystem::remove_all(place_.path("run"));
  }
}

TEST_F(LostOutput, WithStderrStopsNoTrainingEither) {
  const ProgramEnd end = run_without_reader(place_, training(), {.of_stderr = true});
  EXPECT_EQ(end.code, 0);
  EXPECT_EQ(count(log(), kBrokenPipe), 1u) << log();
  expect_trained_to_the_end();
}

TEST_F(LostOutput, OfRanksIsReportedOnceAndTrainingGoesOn) {
  const ProgramEnd end = run_without_reader(place_, training({"--nprocs", "2"}));
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(count(end.err, kBrokenPipe), 1u) << end.err;
  EXPECT_EQ(count(log(), kBrokenPipe), 1u) << log();
  expect_trained_to_the_end();
}

TEST_F(LostOutput, OfALauncherThatTeesIsReportedOnceAndKeptInItsFiles) {
  const Words words = joined({"launch", "--nproc-per-node", "2", "--log-dir", "logs", "-t", "1"}, training());
  const ProgramEnd end = run_without_reader(place_, words);
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(count(end.err, std::string("gradring launch: ") + kBrokenPipe), 1u) << end.err;
  EXPECT_THAT(tests::text_of(place_.path("logs/none/attempt_0/0/stdout.log")), HasSubstr("Test accuracy"));
  expect_trained_to_the_end();
}

/// The next file, or shared memory of the ranks, would otherwise get the number of the closed stream.
TEST_F(LostOutput, WhereStandardStreamsAreClosedStopsNoTraining) {
  for (const char* closed : {">&-", "<&- >&- 2>&-"}) {
    SCOPED_TRACE(closed);
    const ProgramEnd end = tests::run_program(
        in_shell(place_.gradring(training({"--nprocs", "2"})), std::string("exec \"$@\" ") + closed));
    EXPECT_EQ(end.code, 0) << end.err;
    expect_trained_to_the_end();
    std::filesystem::remove_all(place_.path("run"));
  }
}

TEST_F(LostOutput, OfAMessageIsNoCrash) {
  for (const Words& words : {Words{"bogus"}, Words{"launch", "--bogus"}, Words{}, Words{"ckpt"}})
    EXPECT_EQ(tests::run_program(in_shell(place_.gradring(words), "exec \"$@\" 2> /dev/full")).code, 2);
}

TEST_F(LostOutput, DoesNotRestartARunThatIsComplete) {
  const Words words = joined({"launch", "--nproc-per-node", "2", "--max-restarts", "2"}, training());
  const ProgramEnd end = run_on_full_disk(place_, words);
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(count(end.err, kNoSpace), 1u) << end.err;
  expect_trained_to_the_end();
}

TEST_F(LostOutput, OfATrainingOnAFullDiskFailsItAfterTheLastStep) {
  const ProgramEnd end = run_on_full_disk(place_, training());
  EXPECT_EQ(end.code, 3);
  EXPECT_EQ(count(end.err, std::string(kNoSpace) + "; training continues"), 1u) << end.err;
  EXPECT_THAT(log(), HasSubstr(kNoSpace));
  expect_trained_to_the_end();
}

/// A pipe that is full and that nobody reads.
class FullPipe {
 public:
  FullPipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw std::runtime_error("no pipe");
    reader_ = UniqueFd(ends[0]);
    writer_ = UniqueFd(ends[1]);
    while (::write(writer_.get(), "x", 1) == 1) {
    }
  }
  /// A path that opens it for writing.
  std::string path() const { return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(writer_.get()); }

 private:
  UniqueFd reader_, writer_;
};

TEST_F(LostOutput, OfABlockedReaderKeepsNoTrainingFromItsEnd) {
  const FullPipe pipe;
  const auto run_to = [&](const std::string& redirections, const char* run) {
    return in_shell(place_.gradring(training({"--run-dir", run})), "exec \"$@\" " + redirections);
  };
  tests::RunningProgram silent(run_to("> " + pipe.path() + " 2>&1", "silent"));
  const ProgramEnd end = tests::run_program(run_to("> " + pipe.path(), "run"));
  EXPECT_EQ(end.code, 0);
  EXPECT_THAT(end.err, HasSubstr("standard output was not read for 10 s: its last "));
  expect_trained_to_the_end();
  EXPECT_EQ(silent.wait(std::chrono::seconds(60)).code, 0);
  EXPECT_TRUE(std::filesystem::exists(place_.path("silent/checkpoints/step-20")));
}

class LostResult : public tests::Trained {
 protected:
  void write_digit() const {
    const tests::WrittenPng png{.width = 28, .height = 28, .rows = tests::Bytes(28 * 28)};
    place_.folder().write("digit.png", png.bytes());
  }

  /// Of each kind that reports its own errors, and of those that write out results as they come.
  const std::vector<Words> quick_ = {{"--help"},
                                     {"train", "--help"},
                                     {"train", "--print-config"},
                                     {"launch", "--help"},
                                     {"ckpt", "ls", "run"},
                                     {"ckpt", "verify", "run"},
                                     {"runs", "ls", "run"},
                                     {"top", "run", "--once"},
                                     {"data", "info"},
                                     {"bench", "kernels", "--op", "relu", "--shape", "elements=10", "--seconds", "0"}};
  const std::vector<Words> slow_ = {
      {"--version"},
      {"version"},
      {"help", "--man", "train"},
      {"completions", "bash"},
      {"bench", "--help"},
      {"data", "--help"},
      {"plan"},
      {"train", "--dry-run", "--run-dir", "new"},
      {"lr-find", "--dataset", "mnist", "--data-dir", "data", "--batch-size", "8", "--steps", "20"},
      {"lr-find", "--dataset", "mnist", "--data-dir", "data", "--batch-size", "8", "--steps", "20", "--json"},
      {"eval", "--checkpoint", "run", "--json"},
      {"eval", "--checkpoint", "run"},
      {"predict", "--checkpoint", "run", "digit.png"},
      {"predict", "--checkpoint", "run", "--json", "digit.png"},
      {"export", "--help"},
      {"ckpt", "--help"},
      {"trace", "--help"},
      {"trace", "summary", "--help"},
      {"ckpt", "ls", "run", "--json"},
      {"ckpt", "verify", "run", "--json"},
      {"ckpt", "inspect", "run/checkpoints/step-20"},
      {"ckpt", "inspect", "run/checkpoints/step-20", "--json"},
      {"ckpt", "diff", "run", "run"},
      {"ckpt", "prune", "run", "--keep-last", "1", "--dry-run"},
      {"runs", "--help"},
      {"runs", "ls", "run", "--json"},
      {"runs", "show", "run"},
      {"runs", "show", "run", "--json"},
      {"runs", "compare", "run", "run"},
      {"runs", "compare", "run", "run", "--json"},
      {"runs", "export", "run"},
      {"runs", "rm", "run", "--dry-run"},
      {"top", "run"},
      {"model", "show", "convnet"},
      {"model", "show", "convnet", "--json"},
      {"data", "info", "mnist", "--data-dir", "data"},
      {"data", "cache", "ls"},
      {"data", "cache", "rm", "--help"},
      {"data", "fetch", "--help"},
      {"data", "verify", "--help"},
      {"doctor"},
      {"report", "run", "--no-pictures", "-o", "report.html"},
      {"doctor", "--json"},
      {"bench", "step", "--batch-size", "8", "--steps", "1", "--warmup", "0"},
      {"cuda", "--help"},
      {"cuda", "run", "--help"},
      {"cuda", "nvcc", "--help"},
      {"bench", "compare", "--help"},
      {"bench", "allreduce", "--nprocs", "2", "--sizes", "1K"},
      {"bench", "launch", "--nprocs", "1", "--rounds", "1"},
      {"bench", "parallel", "--help"},
      {"bench", "scaling", "--help"},
      {"bench", "restart", "--nprocs", "1", "--rounds", "1"},
      {"bench", "seeds", "--help"},
      {"bench", "diff", "--help"},
      {"bench", "loader", "--dataset", "mnist", "--data-dir", "data", "--batch-size", "5"}};

  bool holds(const Words& name) const {
    return std::ranges::any_of(std::array{&quick_, &slow_}, [&](const auto* commands) {
      return std::ranges::any_of(*commands, [&](const Words& words) {
        return words.size() >= name.size() && std::ranges::equal(name, std::span(words).first(name.size()));
      });
    });
  }
  /// The names that a help lists: the lines that are indented by two.
  std::vector<std::string> listed_by(const Words& help) const {
    std::vector<std::string> names;
    std::istringstream lines(place_.run(help).out);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("  ")) names.push_back(line.substr(2, line.find(' ', 2) - 2));
    return names;
  }
};

TEST_F(LostResult, IsTestedForEveryCommand) {
  for (const std::string& command : listed_by({"--help"})) EXPECT_TRUE(holds({command})) << command;
  for (const char* group : {"bench", "ckpt", "cuda", "data", "model", "runs", "trace"})
    for (const std::string& name : listed_by({group, "--help"}))
      EXPECT_TRUE(holds({group, name})) << group << " " << name;
}

TEST_F(LostResult, OnAFullDiskIsAFailure) {
  write_digit();
  for (const auto* commands : {&quick_, &slow_})
    for (const Words& words : *commands) {
      if (words.front() == "predict" && data::png_library().empty()) continue;
      SCOPED_TRACE(testing::PrintToString(words));
      const ProgramEnd end = run_on_full_disk(place_, words);
      EXPECT_EQ(end.code, 3) << end.err;
      EXPECT_EQ(count(end.err, kNoSpace), 1u) << end.err;
    }
}

TEST_F(LostResult, WithoutAReaderIsNoSuccess) {
  for (const Words& words : quick_) {
    SCOPED_TRACE(testing::PrintToString(words));
    for (const bool sigpipe_ignored : {false, true}) {
      const ProgramEnd end = run_without_reader(place_, words, {.sigpipe_ignored = sigpipe_ignored});
      EXPECT_EQ(end.code, 141);
      EXPECT_THAT(without_load_warning(end.err), IsEmpty());
    }
  }
}

TEST_F(LostResult, KeepsTheCodeOfACommandThatSaysMoreByIt) {
  const std::pair<Words, int> commands[] = {
      {{"ckpt", "diff", "run/checkpoints/step-20", "run/checkpoints/step-40"}, 1},  // they differ
      {{"data", "verify", "mnist", "--data-dir", "data"}, 4}};
  for (const auto& [words, code] : commands) {
    SCOPED_TRACE(testing::PrintToString(words));
    const ProgramEnd end = run_on_full_disk(place_, words);
    EXPECT_EQ(end.code, code) << end.err;
    EXPECT_EQ(count(end.err, kNoSpace), 1u) << end.err;
  }
}

}  // namespace
}  // namespace gradring
