// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/store_mirror.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "comm/rendezvous/file_store.h"
#include "kernels/base/error.h"
#include "tests/support/no_more_files.h"
#include "tests/train/launch/running_launcher.h"
#include "tests/train/support/file_size_limit.h"
#include "train/launch/nodes/message.h"

namespace gradring::train {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

/// The stores of two nodes.
struct TwoNodes {
  TestFolder here, there;
  comm::FileStore store_here{here.path()}, store_there{there.path()};
  StoreMirror mirror_here{here.path()}, mirror_there{there.path()};

  void share() {
    for (const auto& [name, value] : mirror_here.changes()) mirror_there.put(name, value);
    for (const auto& [name, value] : mirror_there.changes()) mirror_here.put(name, value);
  }
};

TEST(StoreMirror, CopiesEntriesBetweenNodes) {
  TwoNodes nodes;
  nodes.store_here.set("a/b c", std::string("1\0x", 3));
  nodes.store_there.set("other", "");
  nodes.share();
  EXPECT_EQ(nodes.store_there.get("a/b c"), std::string("1\0x", 3));
  EXPECT_EQ(nodes.store_here.get("other"), "");
}

TEST(StoreMirror, ReportsEachEntryOnce) {
  TwoNodes nodes;
  nodes.store_here.set("k", "1");
  nodes.share();
  nodes.share();
  EXPECT_THAT(nodes.mirror_here.changes(), IsEmpty());
  EXPECT_THAT(nodes.mirror_there.changes(), IsEmpty());
  nodes.store_there.set("k", "2");
  EXPECT_THAT(nodes.mirror_there.changes(), ElementsAre(Pair("key-k", std::optional<std::string>("2"))));
}

TEST(StoreMirror, RemovesWhatWasRemovedOnTheOtherNode) {
  TwoNodes nodes;
  nodes.store_here.set("mine", "1");
  nodes.store_there.set("theirs", "1");
  nodes.share();
  nodes.store_here.remove("mine");
  nodes.store_here.remove("theirs");
  nodes.share();
  EXPECT_THROW(nodes.store_there.get("mine"), InvalidArgument);
  EXPECT_THROW(nodes.store_there.get("theirs"), InvalidArgument);
  EXPECT_THAT(nodes.mirror_here.changes(), IsEmpty());
  EXPECT_THAT(nodes.mirror_there.changes(), IsEmpty());
  nodes.store_there.set("mine", "1");
  nodes.share();
  EXPECT_EQ(nodes.store_here.get("mine"), "1") << "a removed key may be set again, to the same value";
}

TEST(StoreMirror, HasRoomForNewKeysOnceOthersAreRemoved) {
  const TestFolder folder;
  comm::FileStore store(folder.path());
  StoreMirror mirror(folder.path(), 4);
  for (int i = 0; i < 100; ++i) {
    mirror.put("key-" + std::to_string(i), "from elsewhere");
    store.set("own" + std::to_string(i), "");
    mirror.changes();
    mirror.put("key-" + std::to_string(i), std::nullopt);
    store.remove("own" + std::to_string(i));
    mirror.changes();
  }
}

TEST(StoreMirror, WritesNothingOutsideTheFolder) {
  TwoNodes nodes;
  for (const char* name : {"../x", "key-../../x", "draft-1", "", "lock"}) nodes.mirror_here.put(name, "v");
  EXPECT_TRUE(std::filesystem::is_empty(nodes.here.path()));
}

TEST(StoreMirror, RejectsNewKeysIfTheStoreIsFull) {
  const TestFolder folder;
  StoreMirror mirror(folder.path(), 2);
  mirror.put("key-a", "1");
  mirror.put("key-b", "1");
  EXPECT_THROW(mirror.put("key-c", "1"), MessageError);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "key-c"));
  mirror.put("key-a", "2");
  EXPECT_EQ(comm::FileStore(folder.path()).get("a"), "2");
}

TEST(StoreMirror, PutsNoPartOfAValueOnAFullDisk) {
  const TestFolder folder;
  StoreMirror mirror(folder.path());
  mirror.put("key-a", "old");
  const std::string value(10'000, 'v');
  {
    const tests::FileSizeLimit full(4096);
    EXPECT_THROW(mirror.put("key-a", value), DeviceError);
    EXPECT_THROW(mirror.put("key-b", value), DeviceError);
  }
  EXPECT_EQ(comm::FileStore(folder.path()).get("a"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "a draft remains";
  mirror.put("key-b", value);
  EXPECT_EQ(comm::FileStore(folder.path()).get("b"), value) << "it counted as put";
}

TEST(StoreMirror, FindsEntriesOfEventsThatTheKernelDropped) {
  std::size_t kept = 0;
  std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> kept;
  if (kept == 0 || kept > 200'000) GTEST_SKIP() << "the kernel keeps " << kept << " events";
  const TestFolder folder;
  comm::FileStore store(folder.path());
  StoreMirror mirror(folder.path());
  store.set("a", "1");
  store.set("gone", "1");
  mirror.changes();
  const auto one = folder.path() / "key-a", other = folder.path() / "key-b";
  for (std::size_t event = 0; event <= kept; ++event)
    std::filesystem::rename(event % 2 == 0 ? one : other, event % 2 == 0 ? other : one);
  store.set("late", "2");
  store.remove("gone");
  const auto changes = mirror.changes();
  EXPECT_THAT(changes, ::testing::Contains(Pair("key-late", std::optional<std::string>("2"))));
  EXPECT_THAT(changes, ::testing::Contains(Pair("key-gone", std::optional<std::string>())));
  EXPECT_THAT(mirror.changes(), IsEmpty());
}

TEST(StoreMirror, ReadsEntriesOnceThereAreDescriptors) {
  const TestFolder folder;
  comm::FileStore store(folder.path());
  StoreMirror mirror(folder.path());
  store.set("a", "1");
  {
    const tests::NoMoreFiles full;
    EXPECT_THAT(mirror.changes(), IsEmpty());
  }
  EXPECT_THAT(mirror.changes(), ElementsAre(Pair("key-a", std::optional<std::string>("1"))));
}

}  // namespace
}  // namespace gradring::train
