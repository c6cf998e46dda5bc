// SPDX-License-Identifier: Apache-2.0
// What cmake --install leaves is one folder, which works wherever it is moved to, with or without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/train/app/commands/support/workplace.h"

namespace gradring {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;
using tests::ProgramEnd;
using tests::Words;

class Installed : public testing::Test {
 protected:
  void SetUp() override {
    const fs::path first = place_.path("first");
    const ProgramEnd end =
        tests::run_program({.command = {GRADRING_CMAKE, "--install", GRADRING_BUILD, "--prefix", first.string()},
                            .folder = place_.path("")});
    ASSERT_EQ(end.code, 0) << end.err;
    fs::rename(first, moved_);
  }

  /// A program of the folder that was moved.
  ProgramEnd run(const std::string& program, const Words& words) {
    tests::ProgramSpec spec = place_.gradring(words, {{"PATH", "/nowhere"}});
    spec.command.front() = (moved_ / "bin" / program).string();
    return tests::run_program(spec);
  }

  const tests::Workplace place_;
  const fs::path moved_ = place_.path("moved");
};

TEST_F(Installed, HasProgramsAndDocuments) {
  for (const char* file :
       {"bin/gradring", "bin/gradrun", "share/doc/gradring/README.md", "share/doc/gradring/docs/architecture.md"})
    EXPECT_TRUE(fs::exists(moved_ / file)) << file;
  EXPECT_EQ(fs::read_symlink(moved_ / "bin/gradrun"), "gradring");
}

TEST_F(Installed, RunsWhereItWasMovedTo) {
  const ProgramEnd version = run("gradring", {"--version"});
  EXPECT_EQ(version.code, 0) << version.err;
  EXPECT_THAT(version.out, StartsWith("gradring "));

  const ProgramEnd training = run("gradring", tests::short_training({"--device", "cpu"}));
  EXPECT_EQ(training.code, 0) << training.err;
  EXPECT_TRUE(fs::exists(place_.path("run/summary.json")));

  Words words = {"--nproc-per-node", "2"};
  const Words two = tests::short_training({"--device", "cpu", "--run-dir", "two"});
  words.insert(words.end(), two.begin(), two.end());
  const ProgramEnd launched = run("gradrun", words);
  EXPECT_EQ(launched.code, 0) << launched.err;
  EXPECT_TRUE(fs::exists(place_.path("two/summary.json")));
}

TEST_F(Installed, FindsTheCudaModuleThatCameWithIt) {
  const ProgramEnd doctor = run("gradring", {"doctor"});
  EXPECT_EQ(doctor.code, 0) << doctor.err;
  const fs::path module = moved_ / GRADRING_MODULE_DIR "/libgradring_cuda.so";
  if (!fs::exists(module)) GTEST_SKIP() << "this build has no CUDA module";
  EXPECT_THAT(doctor.out, HasSubstr(module.string()));
  const ProgramEnd refused = run("gradring", tests::short_training({"--device", "cuda:99"}));
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, HasSubstr("cannot use cuda:99: "));
}

}  // namespace
}  // namespace gradring
