// SPDX-License-Identifier: Apache-2.0
// Ranks that have different options, data or checkpoints, as on nodes without a shared disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>
#include <regex>

#include "tests/data/support/written_idx.h"
#include "tests/train/app/commands/support/in_shell.h"
#include "tests/train/app/commands/support/run_directories.h"
#include "train/launch/workers/host.h"

namespace gradring {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using tests::joined;
using tests::ProgramEnd;
using tests::short_training;
using tests::Words;
using Variables = tests::Workplace::Variables;

std::string host() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

/// Two ranks, each in a folder of its own with a copy of the data.
class DifferentRanks : public tests::RunDirectories {
 protected:
  DifferentRanks() {
    for (const char* folder : {"n0", "n1"}) {
      fs::create_directory(place_.path(folder));
      fs::copy(place_.path("data"), place_.path(fs::path(folder) / "data"));
    }
  }

  /// Runs gradring as two ranks, each in its folder.
  std::vector<ProgramEnd> run_both(const Words& first, const Words& second, const Variables& more = {}) const {
    const auto rank = [&](const std::string& number, const Words& words) {
      Variables environment = {{"RANK", number}, {"WORLD_SIZE", "2"}};
      environment.insert(environment.end(), more.begin(), more.end());
      return tests::in_shell(place_.gradring(words, environment), "cd n" + number + " && exec \"$@\"");
    };
    tests::RunningProgram one(rank("0", first)), two(rank("1", second));
    return {one.wait(), two.wait()};
  }
  /// Trains by both with the same words and their own.
  std::vector<ProgramEnd> train(const Words& both, const Words& first = {}, const Words& second = {},
                                const Variables& more = {}) const {
    const Words training = joined(short_training({"--run-dir", place_.path("run").string()}), both);
    return run_both(joined(training, first), joined(training, second), more);
  }
  std::string weights() const { return summary_in(place_.path("run")).at("parameters_sha256"); }
  fs::path data_of(const char* folder, const char* file) const { return place_.path(fs::path(folder) / "data" / file); }
  /// That both ranks end with 163 and this message, and leave no run.
  void expect_disagreement(const std::vector<ProgramEnd>& ends, const std::string& message) const {
    for (const ProgramEnd& end : ends) {
      EXPECT_EQ(end.code, 163);
      const std::regex process(", process [0-9]+, run directory [^,)]+");
      EXPECT_EQ(std::regex_replace(end.err, process, ""),
                "gradring train: the ranks do not agree: " + message +
                    "; if they are of two runs, give each run a GRADRING_RENDEZVOUS_PORT of its own\n");
    }
    EXPECT_FALSE(fs::exists(place_.path("run")));
  }
};

TEST_F(DifferentRanks, OfDifferentOptionsAreNamedWithBothValues) {
  const std::string at = " (" + host() + ")";
  const std::string advice =
      "; give all ranks the same options: on the command line, in GRADRING_* variables and in the --config file";
  expect_disagreement(train({}, {"--batch-size", "8"}, {"--batch-size", "16"}),
                      "batch-size is 8 on rank 0" + at + " but 16 on rank 1" + at + advice);
}

TEST_F(DifferentRanks, OfDifferentTransportsDoNotWaitForEachOther) {
  const auto ends = train({"--timeout", "2s"}, {"--comm", "tcp"}, {"--comm", "shm"});
  EXPECT_EQ(ends[1].code, 163);
  EXPECT_THAT(ends[1].err, AllOf(HasSubstr("the transport is TCP between CPUs on rank 0 ("),
                                 HasSubstr("but shared memory between CPUs on rank 1 ("), HasSubstr("--comm")));
}

TEST_F(DifferentRanks, OfDifferentWorldSizesAreNamedWithBoth) {
  for (const char* words : {"auto", "tcp"}) {
    const Words training = joined(short_training({"--run-dir", place_.path("run").string()}), {"--comm", words});
    tests::RunningProgram one(
        place_.gradring(joined(training, {"--timeout", "3s"}), {{"RANK", "0"}, {"WORLD_SIZE", "2"}}));
    const ProgramEnd other = place_.run(training, {{"RANK", "1"}, {"WORLD_SIZE", "3"}});
    EXPECT_EQ(other.code, 163) << words;
    EXPECT_THAT(other.err, AllOf(HasSubstr("world size"), HasSubstr("rank 0"), HasSubstr("rank 1"), HasSubstr("3")));
    EXPECT_NE(one.wait().code, 0);
  }
}

TEST_F(DifferentRanks, OfEqualDataInTwoFoldersTrain) {
  fs::rename(place_.path("n1/data"), place_.path("n1/copy"));
  EXPECT_THAT(train({}, {"--data-dir", "data"}, {"--data-dir", "copy"}), Each(Field(&ProgramEnd::code, 0)));
}

TEST_F(DifferentRanks, OfDifferentNumbersOfSamplesAreNamedWithTheirFolders) {
  fs::remove(data_of("n1", tests::kTrainLabels));
  fs::copy(data_of("n1", tests::kTestLabels), data_of("n1", tests::kTrainLabels));  // 32 instead of 64
  fs::remove(data_of("n1", tests::kTrainImages));
  fs::copy(data_of("n1", tests::kTestImages), data_of("n1", tests::kTrainImages));
  const auto at = [&](const char* folder) { return " (" + host() + ", " + place_.path(folder).string() + "/data)"; };
  expect_disagreement(train({}), "the size of the training set is 64 samples on rank 0" + at("n0") +
                                     " but 32 samples on rank 1" + at("n1") +
                                     "; give every rank the same files with --data-dir: in a shared folder, or as "
                                     "copies of one");
}

TEST_F(DifferentRanks, OfDifferentSamplesAreFoundInEverySet) {
  const std::pair<const char*, const char*> cases[] = {{tests::kTrainLabels, "training"}, {tests::kTestImages, "test"}};
  for (const auto& [file, set] : cases) {
    SCOPED_TRACE(file);
    std::string bytes = tests::text_of(data_of("n0", file));
    bytes.back() = static_cast<char>(bytes.back() == 1 ? 2 : 1);
    place_.folder().write(fs::path("n1/data") / file, tests::Bytes(bytes.begin(), bytes.end()));
    for (const ProgramEnd& end : train({"--val-split", "8"})) {
      EXPECT_EQ(end.code, 163);
      EXPECT_THAT(end.err, HasSubstr(std::string("the SHA-256 of the ") + set + " set's samples is "));
    }
    fs::remove(data_of("n1", file));
    fs::copy(data_of("n0", file), data_of("n1", file));
  }
}

TEST_F(DifferentRanks, TestLearningRatesOnTheSameData) {
  fs::remove(data_of("n1", tests::kTrainLabels));
  tests::Bytes labels(64, 1);
  place_.folder().write(fs::path("n1/data") / tests::kTrainLabels, tests::idx_bytes({64}, labels));
  const Words test = {"lr-find", "--dataset", "mnist", "--data-dir", "data", "--batch-size", "8"};
  for (const ProgramEnd& end : run_both(test, test)) {
    EXPECT_EQ(end.code, 163);
    EXPECT_THAT(end.err, HasSubstr("the SHA-256 of the training set's samples is "));
  }
}

TEST_F(DifferentRanks, BeginWithTheWeightsOfRank0) {
  for (const char* seed : {"1", "2"})
    ASSERT_EQ(place_.run(short_training({"--run-dir", seed, "--seed", seed})).code, 0);
  fs::copy(place_.path("1/checkpoints/step-2/model.safetensors"), place_.path("n0/w.safetensors"));
  ASSERT_THAT(train({"--weights", "w.safetensors"}), Each(Field(&ProgramEnd::code, 0))) << "on rank 0's disk alone";
  const std::string expected = weights();
  fs::remove_all(place_.path("run"));

  fs::copy(place_.path("2/checkpoints/step-2/model.safetensors"), place_.path("n1/w.safetensors"));
  ASSERT_THAT(train({"--weights", "w.safetensors"}), Each(Field(&ProgramEnd::code, 0)));
  EXPECT_EQ(weights(), expected);
  fs::remove_all(place_.path("run"));

  const auto ends = train({}, {"--weights", "w.safetensors"}, {"--weights", "elsewhere"});
  EXPECT_EQ(ends[0].code, 0);
  EXPECT_THAT(ends[0].err, AllOf(HasSubstr("weights is \"w.safetensors\" on rank 0 ("), HasSubstr("but \"elsewhere\""),
                                 HasSubstr("rank 0 reads the file for all ranks")));
  EXPECT_EQ(weights(), expected);
  fs::remove_all(place_.path("run"));

  for (const ProgramEnd& end : train({}, {"--weights", "w.safetensors"}, {}))
    EXPECT_THAT(end.err, HasSubstr("weights is a path on rank 0 ("));
}

TEST_F(DifferentRanks, DoNotResumeBehindACheckpointOfAnotherDisk) {
  ASSERT_EQ(place_.run(short_training({"--run-dir", "n1/run", "--steps", "4"})).code, 0);
  const Words resumed = {"--resume", "auto", "--run-dir", "run", "--steps", "6"};
  const Variables nodes = {{"LOCAL_RANK", "0"},
                           {"LOCAL_WORLD_SIZE", "1"},
                           {"MASTER_ADDR", "127.0.0.1"},
                           {"MASTER_PORT", std::to_string(train::free_tcp_port())},
                           {"GRADRING_TOKEN", std::string(32, 'a')}};
  for (const ProgramEnd& end : train(resumed, {}, {}, nodes)) {
    EXPECT_EQ(end.code, 163);
    EXPECT_THAT(end.err, AllOf(HasSubstr("the newest checkpoint is missing on rank 0 (" + host() + ", " +
                                         place_.path("n0/run").string() + ") but of step 4 on rank 1 (" + host() +
                                         ", " + place_.path("n1/run").string() + ")"),
                               HasSubstr("rank 0 resumes for all ranks, and would lose")));
  }
  EXPECT_FALSE(fs::exists(place_.path("n0/run")));

  fs::rename(place_.path("n1/run"), place_.path("n0/run"));
  fs::create_directory(place_.path("n1/run"));
  EXPECT_THAT(train(resumed, {}, {}, nodes), Each(Field(&ProgramEnd::code, 0))) << "rank 0 has it, which is enough";
}

}  // namespace
}  // namespace gradring
