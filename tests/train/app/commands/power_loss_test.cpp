// SPDX-License-Identifier: Apache-2.0
// What lies on the disk at which moment: the calls of whole runs, as tests/support/file_faults records them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/support/json.h"
#include "tests/support/sanitizer.h"
#include "tests/train/app/commands/support/file_faults.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using ::testing::ElementsAre;
using tests::Words;

class PowerLoss : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!tests::kSanitizer.empty()) GTEST_SKIP() << "a sanitizer must be the first library";
  }
  void train(const Words& more) {
    const auto end =
        place_.run(tests::short_training(more), tests::file_faults(place_, folder_.parent_path(), "record"));
    ASSERT_EQ(end.code, 0) << end.err;
    for (const std::string& line : tests::lines_of(place_.path("record")))
      if (line.ends_with(" ok")) record_.push_back(line);
  }
  /// The index of the first line from `begin` on that begins so.
  std::ptrdiff_t find(const std::string& start, std::ptrdiff_t begin = 0) const {
    return std::find_if(record_.begin() + begin, record_.end(),
                        [&](const std::string& text) { return text.starts_with(start); }) -
           record_.begin();
  }
  std::ptrdiff_t lines() const { return std::ssize(record_); }
  /// How the lines of this operation on that path, which is relative to the workplace, begin.
  std::string line(const char* operation, const std::filesystem::path& path) const {
    const std::string name = (folder_.filename() / path).lexically_normal().string();
    return std::string("launcher ") + operation + " " + name.substr(0, name.find_last_not_of('/') + 1);
  }
  /// The step of the last whole line in the first `bytes` of the metrics.
  std::int64_t last_step_in(std::size_t bytes) const {
    std::istringstream metrics(tests::text_of(place_.path("run/metrics.jsonl")).substr(0, bytes));
    std::int64_t step = 0;
    for (std::string line; std::getline(metrics, line) && !metrics.eof();)
      step = std::max(step, tests::parse_json(line).value("step", step));
    return step;
  }

  tests::Workplace place_;
  const std::filesystem::path folder_ = std::filesystem::canonical(place_.folder().path());
  std::vector<std::string> record_;  // of the operations that succeeded
};

TEST_F(PowerLoss, KeepsARunDirectoryThatHasItsConfig) {
  train({"--run-dir", "new/folder/run"});
  const std::pair<const char*, const char*> made[] = {
      {"new", "."}, {"new/folder", "new"}, {"new/folder/run", "new/folder"}};
  const std::ptrdiff_t config = find(line("rename", "new/folder/run/config.resolved.toml"));
  ASSERT_LT(config, lines());
  for (const auto& [folder, parent] : made) {
    SCOPED_TRACE(folder);
    const std::ptrdiff_t begin = find(line("mkdir", folder) + " ");
    EXPECT_LT(begin, config);
    EXPECT_LT(find(line("fsync", parent) + " ", begin), config);
  }
}

TEST_F(PowerLoss, KeepsTheMetricsOfEveryStepThatACheckpointHas) {
  train({"--steps", "10", "--epochs", "2", "--save-every-steps", "3", "--keep-last", "0"});
  const std::string fsync = line("fsync", "run/metrics.jsonl") + " ";
  const std::string save = line("rename", "run/checkpoints/step-");
  std::size_t safe_bytes = 0;
  std::vector<std::int64_t> saved;
  for (const std::string& entry : record_) {
    if (entry.starts_with(fsync)) safe_bytes = std::stoul(entry.substr(entry.find(' ', fsync.size())));  // behind NTH
    if (!entry.starts_with(save)) continue;
    saved.push_back(std::stoll(entry.substr(save.size())));
    EXPECT_GE(last_step_in(safe_bytes), saved.back());
  }
  saved.erase(std::unique(saved.begin(), saved.end()), saved.end());
  EXPECT_THAT(saved, ElementsAre(3, 6, 8, 9, 10));  // the epochs end with 8 and 10, saved before and after evaluations
}

}  // namespace
}  // namespace gradring
