// SPDX-License-Identifier: Apache-2.0
// Limits of the shell: what they do not allow is an error with a message, and never the end by a signal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sanitizer.h"
#include "tests/train/app/commands/support/in_shell.h"
#include "tests/train/app/commands/support/trained.h"

namespace gradring {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using tests::ProgramEnd;
using tests::Words;
using tests::Workplace;

constexpr int kEnvironmentExit = 3;

/// The program with files of at most 4096 bytes. Its standard output and error are files, too.
ProgramEnd with_small_files(const Workplace& place, const Words& words) {
  return tests::run_program(tests::in_shell(place.gradring(words), "ulimit -f 8; exec \"$@\""));
}

class FileSizeLimit : public tests::Trained {};

TEST_F(FileSizeLimit, IsAnErrorOfTheFile) {
  for (const char* file : {"w.pt", "w.safetensors", "w.onnx"}) {
    const ProgramEnd end = with_small_files(place_, {"export", "--checkpoint", "run", "--output", file});
    EXPECT_EQ(end.code, kEnvironmentExit) << end.err;
    EXPECT_THAT(end.err, AllOf(HasSubstr(file), HasSubstr("File too large")));
  }
}

/// The system counts it as a file.
TEST_F(FileSizeLimit, IsAnErrorOfSharedMemory) {
  for (const char* ranks : {"1", "2"}) {
    const ProgramEnd end = with_small_files(place_, tests::short_training({"--run-dir", "new", "--nprocs", ranks}));
    EXPECT_EQ(end.code, kEnvironmentExit) << end.err;
    EXPECT_THAT(end.err, AllOf(HasSubstr("bytes of shared memory: File too large"), HasSubstr("ulimit -f")));
  }
}

TEST_F(FileSizeLimit, IsAnErrorOfStandardOutput) {
  const ProgramEnd end = with_small_files(place_, {"train", "--help"});
  EXPECT_EQ(end.code, kEnvironmentExit);
  EXPECT_THAT(end.err, HasSubstr("cannot write standard output: File too large"));
}

/// 25 is SIGXFSZ: the launcher's own programs see the limit as they would without it.
TEST_F(FileSizeLimit, EndsAUsersProgramAsEver) {
  const ProgramEnd end =
      place_.run({"launch", "--", "/bin/sh", "-c", "ulimit -c 0; ulimit -f 1; exec head -c 100000 /dev/zero > big"});
  EXPECT_EQ(end.code, 128 + 25) << end.err;
}

TEST(MemoryLimit, IsAnErrorWithAMessage) {
  if (!tests::kSanitizer.empty()) GTEST_SKIP() << "a sanitizer takes terabytes of addresses";
  const Workplace place;
  for (int kilobytes = 100'000; kilobytes <= 400'000; kilobytes += 25'000) {
    SCOPED_TRACE(kilobytes);
    const ProgramEnd end = tests::run_program(
        tests::in_shell(place.gradring(tests::short_training({"--run-dir", "run-" + std::to_string(kilobytes)})),
                        "ulimit -c 0; ulimit -v " + std::to_string(kilobytes) + "; exec \"$@\""));
    EXPECT_LT(end.code, 128) << end.err;
    if (end.code == 0) {  // a checkpoint that replaces another is on disk before the old one is removed
      EXPECT_THAT(end.err, AnyOf("", HasSubstr("after saving the checkpoint of step")));
    } else {
      EXPECT_NE(end.err, "");
    }
  }
}

}  // namespace
}  // namespace gradring
