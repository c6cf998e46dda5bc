// SPDX-License-Identifier: Apache-2.0
// Redirected, teed and inherited output of workers, with processes.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include <filesystem>
#include <sstream>

#include "kernels/base/file.h"
#include "tests/train/launch/launcher_fixture.h"

namespace gradring::train {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::UnorderedElementsAre;
using Words = std::vector<std::string>;

/// Lines of several workers come in any order.
std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class Logs : public LauncherFixture {
 protected:
  /// Runs workers that print their rank on both streams.
  int run_speakers(Words options, const Words& variables = {}) {
    Words words = {"launch", "--nproc-per-node=2"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"train", "0:say=out 0", "1:say=out 1", "0:complain=err 0", "1:complain=err 1"});
    return run(words, variables);
  }
  std::string log(const std::string& path) const { return logs_.text(path); }
  std::string output() const { return folder_.text("stdout"); }
  std::string log_dir() const { return "--log-dir=" + logs_.path().string(); }

  TestFolder logs_;
};

TEST_F(Logs, InheritTheLaunchersStreamsByDefault) {
  EXPECT_EQ(run_speakers({}), 0);
  EXPECT_THAT(lines_of(output()), UnorderedElementsAre("out 0", "out 1"));
  EXPECT_THAT(lines_of(errors()), UnorderedElementsAre("err 0", "err 1"));
}

TEST_F(Logs, RedirectToFiles) {
  EXPECT_EQ(run_speakers({log_dir(), "-r", "3", "--rdzv-id=job"}), 0);
  EXPECT_EQ(output() + errors(), "");
  EXPECT_EQ(log("job/attempt_0/0/stdout.log"), "out 0\n");
  EXPECT_EQ(log("job/attempt_0/1/stderr.log"), "err 1\n");
}

TEST_F(Logs, RedirectByRank) {
  EXPECT_EQ(run_speakers({log_dir(), "-r", "0:1,1:2"}), 0);
  EXPECT_EQ(output(), "out 1\n");
  EXPECT_EQ(errors(), "err 0\n");
  EXPECT_EQ(log("none/attempt_0/0/stdout.log"), "out 0\n");
  EXPECT_EQ(log("none/attempt_0/1/stderr.log"), "err 1\n");
  EXPECT_FALSE(std::filesystem::exists(logs_.path() / "none/attempt_0/1/stdout.log"));
}

TEST_F(Logs, TeeWithTorchrunsPrefix) {
  EXPECT_EQ(run_speakers({log_dir(), "-t", "3"}), 0);
  EXPECT_THAT(lines_of(output()), UnorderedElementsAre("[default0]:out 0", "[default1]:out 1"));
  EXPECT_THAT(lines_of(errors()), UnorderedElementsAre("[default0]:err 0", "[default1]:err 1"));
  EXPECT_EQ(log("none/attempt_0/1/stdout.log"), "out 1\n");
  EXPECT_EQ(log("none/attempt_0/1/stderr.log"), "err 1\n");
}

TEST_F(Logs, TeeWithoutAFolderOnlyPrefixes) {
  EXPECT_EQ(run_speakers({"-t", "1:1"}), 0);
  EXPECT_THAT(lines_of(output()), UnorderedElementsAre("out 0", "[default1]:out 1"));
}

TEST_F(Logs, TakeThePrefixFromTheOption) {
  EXPECT_EQ(run_speakers({"-t", "0:1", "--role=actor", "--log-prefix=${time} ${role_name} ${rank}/${node_rank} ${x} "}),
            0);
  EXPECT_THAT(lines_of(output()),
              ::testing::Contains(MatchesRegex("....-..-.. ..:..:...... actor 0/0 \\$\\{x\\} out 0")));
}

TEST_F(Logs, TakeThePrefixFromTorchrunsVariable) {
  EXPECT_EQ(run_speakers({"-t", "1"}, {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=<${local_rank}>"}), 0);
  EXPECT_THAT(lines_of(output()), UnorderedElementsAre("<0>out 0", "<1>out 1"));
}

TEST_F(Logs, HideFilteredRanks) {
  EXPECT_EQ(run_speakers({log_dir(), "--local-ranks-filter=1", "-t", "1"}), 0);
  EXPECT_EQ(output(), "[default1]:out 1\n");
  EXPECT_EQ(errors(), "err 1\n");
  EXPECT_EQ(log("none/attempt_0/0/stdout.log"), "out 0\n");
}

TEST_F(Logs, SupportMoreThanTenRanks) {
  EXPECT_EQ(run({"launch", "--nproc-per-node=12", "-t", "11:1,3:1", "--local-ranks-filter=11,3", "train", "3:say=three",
                 "11:say=eleven", "5:say=five"}),
            0);
  EXPECT_THAT(lines_of(output()), UnorderedElementsAre("[default11]:eleven", "[default3]:three"));
}

TEST_F(Logs, KeepEveryAttempt) {
  EXPECT_EQ(run({"launch", log_dir(), "-r1", "--max-restarts=1", "--backoff=0", "train", "@0:say=one", "@0:report=oh",
                 "@0:exit=7", "say=two"}),
            0);
  EXPECT_EQ(log("none/attempt_0/0/stdout.log"), "one\n");
  EXPECT_EQ(log("none/attempt_1/0/stdout.log"), "two\n");
  EXPECT_THAT(log("none/attempt_0/0/error.json"), HasSubstr("\"oh\""));
  EXPECT_THAT(errors(), HasSubstr("code 7: oh\n"));
}

TEST_F(Logs, SecondRunGetsItsOwnFolder) {
  EXPECT_EQ(run_speakers({log_dir(), "-r1", "--rdzv-id=a/b"}), 0);
  EXPECT_EQ(run_speakers({log_dir(), "-r1", "--rdzv-id=a/b"}), 0);
  EXPECT_EQ(log("a_b/attempt_0/0/stdout.log"), "out 0\n");
  EXPECT_EQ(log("a_b_2/attempt_0/0/stdout.log"), "out 0\n");
}

TEST_F(Logs, GoToATemporaryFolderByDefault) {
  EXPECT_EQ(run_speakers({"-r1"}), 0);
  const auto at = errors().find("output goes to ");
  ASSERT_NE(at, std::string::npos) << errors();
  const std::filesystem::path kept = errors().substr(at + 15, errors().find('\n', at) - at - 15);
  EXPECT_TRUE(std::filesystem::exists(kept / "attempt_0/1/stdout.log")) << kept;
  std::filesystem::remove_all(kept.parent_path());
}

TEST_F(Logs, KeepALastLineWithoutALineEnd) {
  EXPECT_EQ(run({"launch", "-t1", "train", "say-part=a", "say-part=b", "say=", "say-part=last"}), 0);
  EXPECT_THAT(lines_of(output()), ::testing::ElementsAre("[default0]:ab", "[default0]:last"));
}

TEST_F(Logs, ShowAPromptBeforeItsLineEnds) {
  RunningLauncher launcher(folder_, {"launch", log_dir(), "-t3", "train", "say-part=continue?", "await=go"});
  EXPECT_TRUE(eventually([&] { return output() == "[default0]:continue?"; })) << output();
  EXPECT_EQ(log("none/attempt_0/0/stdout.log"), "continue?");
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 0);
  EXPECT_EQ(output(), "[default0]:continue?\n");
}

TEST_F(Logs, MixNoTwoRanksInALine) {
  RunningLauncher launcher(folder_, {"launch", "-t1", "--nproc-per-node=2", "train", "0:say-part=12", "0:await=go",
                                     "0:say=34", "1:await=other", "1:say=ab"});
  EXPECT_TRUE(eventually([&] { return output() == "[default0]:12"; })) << output();
  folder_.touch("other");
  EXPECT_TRUE(eventually([&] { return output() == "[default0]:12\n[default1]:ab\n"; })) << output();
  folder_.touch("go");
  EXPECT_EQ(launcher.wait(), 0);
  EXPECT_EQ(output(), "[default0]:12\n[default1]:ab\n[default0]:34\n");
}

TEST_F(Logs, LoseNothingOfLargeOutput) {
  constexpr int kLines = 200'000;
  EXPECT_EQ(run({"launch", log_dir(), "-t1", "--nproc-per-node=2", "--", "seq", std::to_string(kLines)}), 0);
  EXPECT_EQ(lines_of(output()).size(), 2u * kLines);
  EXPECT_EQ(lines_of(log("none/attempt_0/1/stdout.log")).size(), std::size_t(kLines));
}

/// A reader of the launcher's output that reads only on demand.
class PausingReader {
 public:
  explicit PausingReader(const TestFolder& folder, const std::string& stream = "stdout") {
    const auto path = folder.path() / stream;
    if (::mkfifo(path.c_str(), 0600) == 0) fd_ = UniqueFd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  }
  bool is_full() const {
    pollfd room = {fd_.get(), POLLOUT, 0};
    return ::poll(&room, 1, 0) == 0;
  }
  bool has_text() const {
    pollfd text = {fd_.get(), POLLIN, 0};
    return ::poll(&text, 1, 0) == 1;
  }
  void go() { fd_.reset(); }
  /// Reads until `launcher` has ended and all is read.
  std::string read_all(RunningLauncher& launcher, int& code) const {
    std::string text;
    bool ended = false;
    while (true) {
      char buffer[4096];
      const ssize_t size = ::read(fd_.get(), buffer, sizeof buffer);
      if (size > 0) text.append(buffer, static_cast<std::size_t>(size));
      if (size <= 0 && ended) return text;
      if (size <= 0) {
        pollfd more = {fd_.get(), POLLIN, 0};
        if (::poll(&more, 1, 200) == 0) code = launcher.wait(), ended = true;
      }
    }
  }

 private:
  UniqueFd fd_;
};

TEST_F(Logs, PausedReaderLosesNothing) {
  constexpr int kLines = 50'000;
  const PausingReader reader(folder_);
  RunningLauncher launcher(folder_, {"launch", "-t1", "--nproc-per-node=2", "--", "seq", std::to_string(kLines)});
  EXPECT_TRUE(eventually([&] { return reader.is_full(); }));
  int code = -1;
  EXPECT_EQ(lines_of(reader.read_all(launcher, code)).size(), 2u * kLines);
  EXPECT_EQ(code, 0);
}

TEST_F(Logs, PausedReaderDoesNotHideAFailure) {
  const PausingReader reader(folder_);
  RunningLauncher launcher(folder_, {"launch", "-t1", "--nproc-per-node=2", "--", "/bin/sh", "-c",
                                     "[ $RANK = 0 ] || { while ! [ -e go ]; do sleep 0.01; done; exit 7; }; exec yes"});
  EXPECT_TRUE(eventually([&] { return reader.is_full(); }));
  folder_.touch("go");
  EXPECT_TRUE(eventually([&] { return errors().find("code 7") != std::string::npos; })) << errors();
  int code = -1;
  reader.read_all(launcher, code);
  EXPECT_EQ(code, 7);
}

TEST_F(Logs, BlockedReaderDoesNotDelayASignal) {
  const PausingReader reader(folder_);
  RunningLauncher launcher(folder_, {"launch", "-t1", "--", "yes"});
  EXPECT_TRUE(eventually([&] { return reader.is_full(); }));
  launcher.send(SIGTERM);
  EXPECT_EQ(launcher.wait(), 143);
}

TEST_F(Logs, PausedStderrDoesNotBlockTheLauncher) {
  const PausingReader reader(folder_, "stderr");
  RunningLauncher launcher(folder_, {"launch", "-t2", "--", "/bin/sh", "-c", "exec yes >&2"});
  EXPECT_TRUE(eventually([&] { return reader.is_full(); }));
  launcher.send(SIGTERM);  // which it logs to stderr
  EXPECT_EQ(launcher.wait(), 143);
}

TEST_F(Logs, AreDroppedIfTheReaderHasClosed) {
  {
    PausingReader reader(folder_);
    RunningLauncher launcher(folder_, {"launch", "-t1", "--", "/bin/sh", "-c",
                                       "echo one; while ! [ -e go ]; do sleep 0.01; done; seq 10000; exit 7"});
    EXPECT_TRUE(eventually([&] { return reader.has_text(); }));
    reader.go();
    folder_.touch("go");
    EXPECT_EQ(launcher.wait(), 7);
  }
  EXPECT_THAT(errors(), HasSubstr("code 7"));
  const std::string lost = "gradring launch: cannot write standard output: Broken pipe; the run continues";
  EXPECT_THAT(errors(), HasSubstr(lost));
  EXPECT_EQ(errors().find(lost), errors().rfind(lost)) << "once";
}

/// An unread terminal has room for some bytes, but not for a line.
TEST_F(Logs, StoppedTerminalDoesNotBlockTheLauncher) {
  const UniqueFd reader(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(reader && ::grantpt(reader.get()) == 0 && ::unlockpt(reader.get()) == 0);
  std::filesystem::create_symlink(::ptsname(reader.get()), folder_.path() / "stdout");
  RunningLauncher launcher(
      folder_, {"launch", "-t1", "--", "/bin/sh", "-c", "exec awk 'BEGIN {while (1) printf \"%3000d\\n\", 1}'"});
  const UniqueFd writer(::open(::ptsname(reader.get()), O_WRONLY | O_NOCTTY | O_CLOEXEC));
  EXPECT_TRUE(eventually([&] {
    pollfd text = {reader.get(), POLLIN, 0};
    return ::poll(&text, 1, 0) == 1;
  }));
  launcher.send(SIGTERM);
  EXPECT_EQ(launcher.wait(), 143);
}

TEST_F(Logs, DoNotWaitForADaemon) {
  EXPECT_EQ(run({"launch", "-t3", "--", "/bin/sh", "-c",
                 R"(setsid sh -c 'echo x > stays; sleep 300' &
                    while ! [ -e stays ]; do :; done; echo done)"}),
            0);
  EXPECT_EQ(output(), "[default0]:done\n");
  for (const pid_t left : processes_with(folder_.mark())) signal_process(left, SIGKILL);
}

/// In the second attempt, the teed logs of rank 0 are on a full disk, and the workers exit with `code`.
class LogsOnAFullDisk : public Logs {
 protected:
  int run_speakers(const std::string& code) {
    const std::string plant = fmt::format(
        "mkdir -p '{0}/x/attempt_1/0' && ln -sf /dev/full '{0}/x/attempt_1/0/stdout.log' && "
        "ln -sf /dev/full '{0}/x/attempt_1/0/stderr.log'",
        logs_.path().string());
    const std::string work = fmt::format(
        "if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then [ $RANK = 1 ] && sleep 60; {}; exit 9; fi; echo a; echo b >&2; "
        "sleep 0.05; echo c; exit {}",
        plant, code);
    return run(
        {"launch", "--nproc-per-node=2", "--max-restarts=1", "--rdzv-id=x", log_dir(), "-t3", "--", "sh", "-c", work});
  }
  std::size_t times(const std::string& text) const {
    std::size_t count = 0;
    for (const std::string& line : lines_of(errors())) count += line.find(text) != std::string::npos;
    return count;
  }
};

TEST_F(LogsOnAFullDisk, AreReportedOnceAndTurnSuccessIntoCode3) {
  EXPECT_EQ(run_speakers("0"), 3) << errors();
  EXPECT_EQ(times("gradring launch: cannot write"), 1u) << errors();
  EXPECT_EQ(times("No space left on device; the run continues"), 1u) << errors();
  EXPECT_EQ(log("x/attempt_1/1/stdout.log"), "a\nc\n");
  EXPECT_THAT(output(), HasSubstr("[default0]:c\n"));
}

TEST_F(LogsOnAFullDisk, DoNotChangeFailureCodes) { EXPECT_EQ(run_speakers("7"), 7) << errors(); }

TEST_F(Logs, ReportAnUnwritableFolder) {
  EXPECT_EQ(run({"launch", "--log-dir=/proc/none", "-r1", "train"}), 3);
  EXPECT_THAT(errors(), HasSubstr("cannot create the log folder /proc/none"));
  EXPECT_THAT(errors(), HasSubstr("set --log-dir to a writable folder"));
}

}  // namespace
}  // namespace gradring::train
