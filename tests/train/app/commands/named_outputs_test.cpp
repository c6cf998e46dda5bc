// SPDX-License-Identifier: Apache-2.0
// Files that options name for a command to write.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/support/sanitizer.h"
#include "tests/train/app/commands/support/file_faults.h"
#include "tests/train/app/commands/support/run_directories.h"
#include "tests/train/app/commands/support/trained.h"

namespace gradring::tests {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

/// A command line up to the name of the file that it writes.
struct Output {
  Words words{};
  bool has_mark = true;  ///< gradring recognizes what it wrote
};

const Words kLrFind = {"lr-find", "--dataset", "mnist", "--data-dir", "data", "--batch-size", "8", "--steps", "2"};
const Words kKernels = {"bench", "kernels", "--op", "relu", "--shape", "elements=10", "--seconds", "0"};
const Words kAllReduce = {"bench", "allreduce", "--comm", "in-process", "--nprocs", "2", "--sizes", "1K"};
const Words kParallel = {"bench", "parallel", "--dataset", "mnist", "--data-dir", "data"};

class NamedOutputs : public Trained {
 protected:
  const std::vector<Output> quick_ = {{.words = {"report", "run", "--no-pictures", "--output"}},
                                      {.words = {"runs", "compare", "run", "run", "--html"}},
                                      {.words = {"runs", "export", "run", "--output"}},
                                      {.words = {"plan", "--json-file"}},
                                      {.words = joined(kLrFind, {"--csv"})},
                                      {.words = joined(kLrFind, {"--plot"})},
                                      {.words = {"eval", "run", "--logits"}, .has_mark = false},
                                      {.words = joined(kKernels, {"--json-file"})},
                                      {.words = joined(kKernels, {"--csv-file"})},
                                      {.words = joined(kAllReduce, {"--plot"})}};
  /// What they write is not waited for.
  const std::vector<Output> slow_ = {{.words = joined(kParallel, {"--json-file"})},
                                     {.words = short_training({"--trace"})}};

  void write(const std::string& name, const std::string& text) const { std::ofstream(place_.path(name)) << text; }
  std::string text(const std::string& name) const { return text_of(place_.path(name)); }
};

TEST_F(NamedOutputs, ReplaceNoFileOfAnotherOriginUnlessForced) {
  const std::string precious = "<!DOCTYPE html>\n{\"schema\": 1}\nthe user's\n";
  for (const auto* outputs : {&quick_, &slow_})
    for (const Output& output : *outputs) {
      SCOPED_TRACE(testing::PrintToString(output.words));
      write("file", precious);
      const ProgramEnd end = place_.run(joined(output.words, {"file"}));
      EXPECT_EQ(end.code, 2);
      EXPECT_THAT(end.err,
                  AllOf(HasSubstr(output.words.back() + ": file exists"), HasSubstr("name another file, or re")));
      EXPECT_EQ(text("file"), precious);
    }
  for (const Output& output : quick_) {
    SCOPED_TRACE(testing::PrintToString(output.words));
    write("file", precious);
    const ProgramEnd forced = place_.run(joined(output.words, {"file", "--force"}));
    EXPECT_EQ(forced.code, 0) << forced.err;
    EXPECT_NE(text("file"), precious);
    EXPECT_EQ(place_.run(joined(output.words, {"file"})).code, output.has_mark ? 0 : 2);
    write("file", "");
    EXPECT_EQ(place_.run(joined(output.words, {"file"})).code, 0) << "an empty file";
  }
  ASSERT_EQ(place_.run(short_training({"--run-dir", "a", "--trace", "trace.json.gz"})).code, 0);
  EXPECT_EQ(place_.run(short_training({"--run-dir", "b", "--trace", "trace.json.gz"})).code, 0) << "its own trace";
}

TEST_F(NamedOutputs, NeedAFolderBeforeAnythingIsComputed) {
  for (const auto* outputs : {&quick_, &slow_})
    for (const Output& output : *outputs) {
      SCOPED_TRACE(testing::PrintToString(output.words));
      const ProgramEnd end = place_.run(joined(output.words, {"none/file"}));
      EXPECT_EQ(end.code, 2);
      EXPECT_THAT(end.err, AnyOf(HasSubstr("none/file is in a folder that does not exist; create it"),
                                 HasSubstr("but there is no folder")));
      EXPECT_EQ(end.out, "");
    }
}

TEST_F(NamedOutputs, NeverReplaceAFileOfARun) {
  fs::create_symlink("run/metrics.jsonl", place_.path("link"));
  const std::string metrics = text("run/metrics.jsonl");
  for (const char* file : {"run/metrics.jsonl", "run/config.resolved.toml", "run/config.resolved-2.toml", "run/.lock",
                           "run/summary.json", "run/logs/a", "run/checkpoints/step-20/model.safetensors",
                           "run/checkpoints/latest/model.safetensors", "run/tensorboard/a", "link"})
    for (const Output& output : {quick_[0], quick_[6]}) {
      const ProgramEnd end = place_.run(joined(output.words, {file, "--force"}));
      EXPECT_EQ(end.code, 2) << file;
      EXPECT_THAT(end.err,
                  AllOf(HasSubstr(std::string(file) + " belongs to the run "), HasSubstr("name another file")));
    }
  for (const auto* outputs : {&quick_, &slow_})
    for (const Output& output : *outputs) {
      EXPECT_EQ(place_.run(joined(output.words, {"run/metrics.jsonl"})).code, 2)
          << testing::PrintToString(output.words);
    }
  EXPECT_EQ(text("run/metrics.jsonl"), metrics);
  EXPECT_EQ(place_.run({"report", "run", "--no-pictures", "-o", "run/report.html"}).code, 0) << "a name of the user's";
  EXPECT_EQ(place_.run({"report", "run", "--no-pictures", "-o", "run"}).code, 2) << "a folder";
}

TEST_F(NamedOutputs, OnAFullDiskAreTheOldFileOrNone) {
  if (!tests::kSanitizer.empty()) GTEST_SKIP() << "a sanitizer has to be the first library that is loaded";
  Workplace::Variables full_disk = file_faults(place_, fs::canonical(place_.path(".")), "hit");
  full_disk.emplace_back("GRADRING_FILE_FAULT", "launcher write out/file.tmp 1 full");
  for (const Output& output : quick_) {
    SCOPED_TRACE(testing::PrintToString(output.words));
    for (const bool is_new : {false, true}) {
      fs::remove_all(place_.path("out"));
      fs::create_directory(place_.path("out"));
      if (!is_new) write("out/file", "old");
      const ProgramEnd end = place_.run(joined(output.words, {"out/file", "--force"}), full_disk);
      EXPECT_EQ(end.code, 3);
      EXPECT_THAT(end.err,
                  HasSubstr("cannot write out/file: No space left on device; free some space or choose another "
                            "file"));
      EXPECT_EQ(std::distance(fs::directory_iterator(place_.path("out")), {}), is_new ? 0 : 1);
      EXPECT_EQ(text("out/file"), is_new ? "" : "old");
    }
  }
}

TEST_F(NamedOutputs, KeepPermissionsAndWriteIntoDevices) {
  write("page.html", "");
  fs::permissions(place_.path("page.html"), fs::perms::owner_read | fs::perms::owner_write);
  ASSERT_EQ(place_.run({"report", "run", "--no-pictures", "-o", "page.html"}).code, 0);
  EXPECT_EQ(fs::status(place_.path("page.html")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  const ProgramEnd end = place_.run({"report", "run", "--no-pictures", "-o", "/dev/stdout"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("<meta name=\"generator\" content=\"gradring\">"));
}

}  // namespace
}  // namespace gradring::tests
