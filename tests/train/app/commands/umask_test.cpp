// SPDX-License-Identifier: Apache-2.0
// What gradring creates has the mode that the umask leaves, as files of other programs: groups share folders by umask
// 002. Secrets are for their user alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sanitizer.h"
#include "tests/train/app/commands/support/file_faults.h"
#include "tests/train/app/commands/support/in_shell.h"
#include "tests/train/app/commands/support/workplace.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using tests::short_training;
using tests::Words;
using tests::Workplace;

class Umask : public ::testing::Test {
 protected:
  void run(const Words& words, const Workplace::Variables& variables = {}) const {
    const auto end = tests::run_program(tests::in_shell(place_.gradring(words, variables), "umask 002; exec \"$@\""));
    ASSERT_EQ(end.code, 0) << words.at(0) << " " << words.at(1) << ": " << end.err;
  }

  Workplace place_;
};

TEST_F(Umask, DecidesTheModeOfFilesAndFolders) {
  run({"launch",
       "--nproc-per-node",
       "2",
       "--log-dir",
       "logs",
       "--redirects",
       "3",
       "train",
       "--dataset",
       "mnist",
       "--data-dir",
       "data",
       "--steps",
       "4",
       "--batch-size",
       "8",
       "--run-dir",
       "runs/run",
       "--progress",
       "none",
       "--device",
       "cpu",
       "--save-every-steps",
       "2",
       "--log",
       "tensorboard",
       "--trace",
       "trace.json"});
  run({"train", "--dataset", "mnist", "--data-dir", "data", "--steps", "5", "--batch-size", "16", "--run-dir",
       "runs/run", "--progress", "none", "--device", "cpu", "--resume", "auto", "--lr", "0.01"});
  for (const char* file : {"run.onnx", "run.safetensors", "run.pt"}) run({"export", "runs/run", "--output", file});
  run({"report", "runs/run", "-o", "report.html"});
  run({"eval", "runs/run", "--data-dir", "data", "--logits", "logits.npy"});
  run({"runs", "export", "runs/run", "-o", "steps.csv"});
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(place_.path("."))) {
    if (entry.path().string().find("/data") != std::string::npos || entry.is_symlink()) continue;
    ++files;
    EXPECT_EQ(entry.status().permissions(), fs::perms(entry.is_directory() ? 0775 : 0664)) << entry.path();
  }
  EXPECT_GT(files, 30);
}

TEST_F(Umask, DoesNotOpenSecretsToOthers) {
  if (!tests::kSanitizer.empty()) GTEST_SKIP() << "a sanitizer has to be the first library that is loaded";
  auto variables = tests::file_faults(place_, fs::canonical(place_.path(".")), "hit");
  variables.emplace_back("GRADRING_FILE_FAULT", "rank0 create run/config.resolved.toml.tmp 1 command");
  variables.emplace_back("GRADRING_FILE_FAULT_COMMAND",
                         "cd '" + place_.path(".").string() + "' && find gradring-* -printf '%#m %p\\n' > modes");
  run(tests::launched(short_training()), variables);
  std::vector<std::string> folders, entries;
  for (const std::string& line : tests::lines_of(place_.path("modes"))) {
    if (line.find("gradring-run-") != std::string::npos && line.find('/') == std::string::npos) folders.push_back(line);
    if (line.ends_with("/store")) folders.push_back(line);
    if (line.find("/store/") != std::string::npos) entries.push_back(line);
  }
  EXPECT_THAT(folders, AllOf(SizeIs(2), Each(StartsWith("0700 "))));
  EXPECT_THAT(entries, AllOf(Not(SizeIs(0)), Each(StartsWith("0600 "))));
}

}  // namespace
}  // namespace gradring
