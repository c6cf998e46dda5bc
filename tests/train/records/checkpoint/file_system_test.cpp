// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>

#include "tests/support/temp_folder.h"
#include "tests/train/records/checkpoint/tensors.h"
#include "tests/train/support/faulty_files.h"
#include "tests/train/support/memory_disk.h"
#include "train/records/checkpoint/error.h"

namespace gradring::train {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;
using tests::Fault;
using tests::FaultyFiles;
using tests::MemoryDisk;

namespace fs = std::filesystem;

int code_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const FileError& error) {
    return error.code();
  }
  return 0;
}

std::string text_of(FileSystem& files, const fs::path& path) {
  const auto file = files.open(path);
  return read_text(*file, path, 0, file->size());
}

/// The behavior that both file systems share.
void expect_a_file_system(FileSystem& files, const fs::path& root) {
  write_new_file(files, root / "a", "first");
  EXPECT_EQ(text_of(files, root / "a"), "first");
  EXPECT_EQ(code_of([&] { files.create(root / "a"); }), EEXIST);
  EXPECT_EQ(code_of([&] { files.open(root / "b"); }), ENOENT);

  files.make_folder(root / "folder");
  EXPECT_EQ(code_of([&] { files.make_folder(root / "folder"); }), EEXIST);
  EXPECT_EQ(code_of([&] { files.open(root / "folder"); }), EISDIR);
  write_new_file(files, root / "folder" / "b", "second");
  files.sync_folder(root / "folder");
  EXPECT_EQ(code_of([&] { files.remove_folder(root / "folder"); }), ENOTEMPTY);

  files.make_link("folder", root / "link");
  EXPECT_EQ(files.read_link(root / "link"), "folder");
  EXPECT_EQ(code_of([&] { files.read_link(root / "a"); }), EINVAL);
  files.make_link("nowhere", root / "aside");
  files.rename(root / "aside", root / "link");
  EXPECT_EQ(files.read_link(root / "link"), "nowhere");
  EXPECT_TRUE(files.exists(root / "link"));
  EXPECT_FALSE(files.exists(root / "aside"));
  EXPECT_THAT(files.list(root), UnorderedElementsAre("a", "folder", "link"));

  files.rename(root / "folder", root / "moved");
  EXPECT_EQ(text_of(files, root / "moved" / "b"), "second");
  files.remove_file(root / "moved" / "b");
  files.remove_folder(root / "moved");
  files.remove_file(root / "link");
  EXPECT_EQ(code_of([&] { files.remove_file(root / "link"); }), ENOENT);
  EXPECT_THAT(files.list(root), UnorderedElementsAre("a"));
  EXPECT_EQ(code_of([&] { files.list(root / "moved"); }), ENOENT);
}

TEST(PosixFileSystem, ConformsToInterface) {
  const tests::TempFolder folder;
  PosixFileSystem files;
  expect_a_file_system(files, folder.path());
}

TEST(MemoryDisk, ConformsToInterface) {
  MemoryDisk disk;
  disk.make_folder("/run");
  expect_a_file_system(disk, "/run");
}

TEST(PosixFileSystem, NamesFailedOperation) {
  PosixFileSystem files;
  try {
    files.create("/no/such/folder/file");
    FAIL();
  } catch (const FileError& error) {
    EXPECT_STREQ(error.what(), "cannot create /no/such/folder/file: No such file or directory");
  }
}

TEST(PosixFileSystem, RejectsFifosAndDevicesWithoutBlocking) {
  const tests::TempFolder folder;
  const fs::path fifo = folder.path() / "fifo", socket = folder.path() / "socket";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  ASSERT_EQ(::mknod(socket.c_str(), S_IFSOCK | 0600, 0), 0);
  PosixFileSystem files;
  EXPECT_EQ(code_of([&] { files.open(fifo); }), EINVAL);
  EXPECT_EQ(code_of([&] { files.open(socket); }), ENXIO);
  EXPECT_EQ(code_of([&] { files.open("/dev/null"); }), EINVAL);
  for (const fs::path& path : {fifo, socket, folder.path()})
    EXPECT_THAT(refusal([&] { open_to_read(files, path); }), HasSubstr("is not a regular file")) << path;
}

TEST(MemoryDisk, LosesUnsyncedData) {
  std::mt19937 random(5);
  int names_lost = 0, bytes_lost = 0;
  for (int i = 0; i < 100; ++i) {
    MemoryDisk disk;
    disk.make_folder("/run");
    disk.sync_folder("/");
    write_new_file(disk, "/run/kept", "text");
    disk.sync_folder("/run");
    const auto file = disk.create("/run/unsynced");
    write_all(*file, "/run/unsynced", bytes_of("text"));
    disk.lose_power(random);
    EXPECT_EQ(text_of(disk, "/run/kept"), "text");
    if (!disk.exists("/run/unsynced"))
      ++names_lost;
    else if (text_of(disk, "/run/unsynced") != "text")
      ++bytes_lost;
  }
  EXPECT_GT(names_lost, 10);
  EXPECT_GT(bytes_lost, 10);
}

TEST(FaultyFiles, FailsRequestedCall) {
  MemoryDisk disk;
  FaultyFiles counting(disk, {});
  write_new_file(counting, "/a", "text");
  EXPECT_EQ(counting.calls(), 4) << "create, write, sync, close";

  FaultyFiles io_error(disk, {.kind = Fault::Kind::error, .at_call = 2, .code = EIO});
  EXPECT_EQ(code_of([&] { write_new_file(io_error, "/b", "text"); }), EIO);
  EXPECT_EQ(text_of(disk, "/b"), "");

  FaultyFiles full(disk, {.kind = Fault::Kind::disk_full, .at_call = 2});
  EXPECT_EQ(code_of([&] { write_new_file(full, "/c", "text"); }), ENOSPC);
  EXPECT_EQ(code_of([&] { write_new_file(full, "/d", "text"); }), ENOSPC);
  full.remove_file("/c");

  FaultyFiles cut(disk, {.kind = Fault::Kind::power_cut, .at_call = 2});
  EXPECT_THROW(write_new_file(cut, "/e", "text"), tests::PowerCut);
  EXPECT_THROW(cut.remove_file("/e"), tests::PowerCut);
  EXPECT_EQ(text_of(disk, "/e"), "");
}

TEST(WriteAll, ContinuesAfterShortWrites) {
  MemoryDisk disk;
  FaultyFiles files(disk, {.kind = Fault::Kind::short_write, .at_call = 2});
  write_new_file(files, "/a", "text");
  EXPECT_EQ(text_of(disk, "/a"), "text");
  EXPECT_EQ(files.calls(), 5) << "create, two writes, sync, close";
}

TEST(OpenToRead, DistinguishesInvalidFilesFromSystemErrors) {
  MemoryDisk disk;
  write_new_file(disk, "/a", "text");
  EXPECT_THAT(refusal([&] { open_to_read(disk, "/b"); }), HasSubstr("/b is missing"));
  EXPECT_THAT(refusal([&] { open_to_read(disk, "/a/b"); }), HasSubstr("/a/b is missing"));
  for (int code : {EACCES, EIO, EMFILE, ESTALE}) {
    FaultyFiles unopened(disk, {.kind = Fault::Kind::error, .at_call = 1, .code = code});
    EXPECT_EQ(code_of([&] { open_to_read(unopened, "/a"); }), code);
    FaultyFiles unread(disk, {.kind = Fault::Kind::error, .at_call = 2, .code = code});
    const auto file = open_to_read(unread, "/a");
    EXPECT_EQ(code_of([&] { read_text(*file, "/a", 0, 4); }), code);
  }
}

TEST(ReadExactly, ReportsWhereFileEnds) {
  MemoryDisk disk;
  write_new_file(disk, "/a", "text");
  const auto file = disk.open("/a");
  EXPECT_EQ(read_text(*file, "/a", 1, 3), "ext");
  try {
    read_text(*file, "/a", 1, 4);
    FAIL();
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/a is truncated: it ends at byte 4"));
  }
}

}  // namespace
}  // namespace gradring::train
