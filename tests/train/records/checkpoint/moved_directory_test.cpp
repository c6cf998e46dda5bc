// SPDX-License-Identifier: Apache-2.0
// The run directory is moved or removed at each call of a save, and its path becomes that of another run: what is saved
// must not land there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>

#include "tests/support/temp_folder.h"
#include "tests/train/records/checkpoint/small_checkpoint.h"
#include "tests/train/support/faulty_files.h"
#include "train/records/checkpoint/checkpoint_directory.h"
#include "train/records/checkpoint/error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using tests::Fault;
using tests::FaultyFiles;

constexpr Retention kKept = {.keep_last = 2, .keep_best = 1};

std::string bytes_in_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Each entry below a folder: a hash of a file, the target of a link.
std::map<std::string, std::string> contents_of(const fs::path& folder) {
  std::map<std::string, std::string> contents;
  const auto hash = [](const std::string& bytes) { return std::to_string(std::hash<std::string>()(bytes)); };
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    contents[entry.path().lexically_relative(folder)] = entry.is_symlink()        ? fs::read_symlink(entry).string()
                                                        : entry.is_regular_file() ? hash(bytes_in_file(entry))
                                                                                  : "";
  return contents;
}

void copy_run(const fs::path& from, const fs::path& to) {
  fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
}

/// A run whose next save, of step 4, removes step 2: `run`. Another with the same steps: `other`.
class MovedDirectory : public testing::Test {
 protected:
  MovedDirectory() {
    save_all(first_, 0);
    save_all(other_, 0.5);
    theirs_ = contents_of(other_);
    calls_ = save_before({});
    fs::remove_all(run_);
  }

  static void save_all(const fs::path& run, double more) {
    fs::create_directory(run);
    PosixFileSystem files;
    CheckpointDirectory directory(files, run / "checkpoints", kKept);
    for (const double step : {1.0, 2.0, 3.0})
      EXPECT_THAT(directory.save(small_checkpoint(static_cast<std::int64_t>(step), 1 / step + more)), IsEmpty());
  }

  /// Saves step 4 in a new `run`, with a fault. Returns how many calls there were.
  int save_before(const Fault& fault) {
    copy_run(first_, run_);
    const Directory held(run_);
    PosixFileSystem files(held);
    FaultyFiles faulty(files, fault);
    try {
      problems_ = CheckpointDirectory(faulty, run_ / "checkpoints", kKept).save(small_checkpoint(4, 0.1));
    } catch (const FileError& error) {
      problems_ = {error.what()};
    }
    return faulty.calls();
  }

  tests::TempFolder folder_;
  fs::path first_ = folder_.path() / "first", run_ = folder_.path() / "run", old_ = folder_.path() / "old",
           other_ = folder_.path() / "other";
  std::map<std::string, std::string> theirs_;
  int calls_ = 0;
  std::vector<std::string> problems_;
};

TEST_F(MovedDirectory, GetsTheCheckpointAndTheOtherRunStaysAsItIs) {
  ASSERT_GT(calls_, 30);
  for (int call = 1; call <= calls_; ++call) {
    SCOPED_TRACE(testing::Message() << "call " << call << " of " << calls_);
    save_before({.at_call = call, .meanwhile = [this] {
                   fs::rename(run_, old_);
                   fs::rename(other_, run_);
                 }});
    EXPECT_THAT(problems_, IsEmpty());
    EXPECT_EQ(contents_of(run_), theirs_);
    PosixFileSystem files;
    EXPECT_THAT(files.list(old_ / "checkpoints"), UnorderedElementsAre("step-1", "step-3", "step-4", "latest", "best"));
    EXPECT_EQ(files.read_link(old_ / "checkpoints" / "latest"), "step-4");
    EXPECT_EQ(files.read_link(old_ / "checkpoints" / "best"), "step-1");
    fs::rename(run_, other_);
    fs::remove_all(old_);
  }
}

TEST_F(MovedDirectory, IfItIsRemovedNothingIsWritten) {
  ASSERT_GT(calls_, 30);
  for (int call = 1; call <= calls_; ++call) {
    SCOPED_TRACE(testing::Message() << "call " << call << " of " << calls_);
    save_before({.at_call = call, .meanwhile = [this] {
                   fs::remove_all(run_);
                   fs::rename(other_, run_);
                 }});
    EXPECT_EQ(contents_of(run_), theirs_);
    fs::rename(run_, other_);
    EXPECT_FALSE(fs::exists(run_));
  }
}

}  // namespace
}  // namespace gradring::train
