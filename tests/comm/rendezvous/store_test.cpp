// SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous/store.h"

#include <gmock/gmock.h>

#include <thread>

#include "comm/rendezvous/file_store.h"
#include "comm/rendezvous/tcp_store.h"
#include "comm/rendezvous/tcp_store_server.h"
#include "comm/transport/error.h"
#include "tests/comm/rendezvous/served_store.h"
#include "tests/support/temp_folder.h"

namespace gradring::comm {
namespace {

using ::testing::HasSubstr;

Deadline soon() { return Deadline::after(std::chrono::milliseconds(50)); }
Deadline late() { return Deadline::after(std::chrono::seconds(60)); }

/// A store of each kind with its resources.
class StoreWorld {
 public:
  virtual ~StoreWorld() = default;
  virtual Store& store() = 0;
};

class MemoryWorld final : public StoreWorld {
 public:
  Store& store() override { return store_; }

 private:
  MemoryStore store_;
};

class FileWorld final : public StoreWorld {
 public:
  Store& store() override { return store_; }

 private:
  tests::TempFolder directory_;
  FileStore store_{directory_.path() / "store"};
};

/// The store of rank 1.
class TcpWorld final : public StoreWorld {
 public:
  Store& store() override { return store_; }

 private:
  TcpStoreServer server_{0, tests::identity_of_rank(0, 2)};
  TcpStore store_{tests::client_spec(tests::port_of(server_), tests::identity_of_rank(1, 2))};
};

class ServerWorld final : public StoreWorld {
 public:
  Store& store() override { return server_; }

 private:
  TcpStoreServer server_{0, tests::identity_of_rank(0, 2)};
};

template <class World>
class StoreTest : public ::testing::Test {
 protected:
  Store& store() { return world_.store(); }

 private:
  World world_;
};

class WorldNames {
 public:
  template <class World>
  static std::string GetName(int index) {
    return std::vector<std::string>{"Memory", "File", "Tcp", "TcpServer"}[static_cast<std::size_t>(index)];
  }
};

using Worlds = ::testing::Types<MemoryWorld, FileWorld, TcpWorld, ServerWorld>;
TYPED_TEST_SUITE(StoreTest, Worlds, WorldNames);

TYPED_TEST(StoreTest, ReturnsTheLastValueSet) {
  Store& store = this->store();
  store.set("key", "first");
  store.set("key", "second");
  EXPECT_EQ(store.get("key"), "second");
  EXPECT_EQ(store.wait("key", soon()), "second");
}

TYPED_TEST(StoreTest, AcceptsAnyBytesInKeysAndValues) {
  Store& store = this->store();
  const std::string value = std::string("a\0b\n", 4) + std::string(Store::kMaxValueBytes - 4, '\xff');
  const std::vector<std::string> keys = {"../escape", "a/b",           "a%2fb",
                                         ".",         "spaces and \n", std::string(Store::kMaxKeyBytes, '/')};
  for (const std::string& key : keys) {
    store.set(key, key + "!");
    EXPECT_EQ(store.get(key), key + "!");
  }
  EXPECT_EQ(store.get("a/b"), "a/b!");
  store.set("long", value);
  EXPECT_EQ(store.get("long"), value);
  store.set("empty", "");
  EXPECT_EQ(store.get("empty"), "");
}

TYPED_TEST(StoreTest, RejectsInvalidLengths) {
  Store& store = this->store();
  EXPECT_THROW(store.set("", "x"), InvalidArgument);
  EXPECT_THROW(store.set(std::string(Store::kMaxKeyBytes + 1, 'k'), "x"), InvalidArgument);
  EXPECT_THROW(store.set("k", std::string(Store::kMaxValueBytes + 1, 'v')), InvalidArgument);
  EXPECT_THROW(store.get("k"), InvalidArgument);
}

TYPED_TEST(StoreTest, WaitTimeoutNamesTheKey) {
  try {
    this->store().wait("rank/3/address", soon());
    FAIL() << "the key is not set";
  } catch (const Timeout& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank/3/address"));
  }
}

TYPED_TEST(StoreTest, SetWakesWaiters) {
  Store& store = this->store();
  std::vector<std::thread> waiting;
  std::vector<std::string> seen(4);
  for (std::string& value : seen) waiting.emplace_back([&] { value = store.wait("key", late()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  store.set("key", "value");
  for (std::thread& thread : waiting) thread.join();
  EXPECT_THAT(seen, ::testing::Each("value"));
}

TYPED_TEST(StoreTest, RemovesAKey) {
  Store& store = this->store();
  store.set("key", "value");
  store.set("other", "stays");
  store.remove("key");
  store.remove("key");
  store.remove("never/set");
  EXPECT_THROW(store.get("key"), InvalidArgument);
  EXPECT_THROW(store.wait("key", soon()), Timeout);
  EXPECT_EQ(store.add("key", 7), 7);
  EXPECT_EQ(store.get("other"), "stays");
  EXPECT_THROW(store.remove(""), InvalidArgument);
}

TYPED_TEST(StoreTest, AddIsAtomic) {
  Store& store = this->store();
  EXPECT_EQ(store.add("count", -5), -5);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) store.add("count", 2);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store.add("count", 0), 8 * 50 * 2 - 5);
  EXPECT_EQ(store.get("count"), "795");
}

TYPED_TEST(StoreTest, AddRejectsNonNumbers) {
  Store& store = this->store();
  store.set("text", "12 apples");
  EXPECT_THROW(store.add("text", 1), InvalidArgument);
  store.set("large", "9223372036854775807");
  EXPECT_THROW(store.add("large", 1), InvalidArgument);
  EXPECT_EQ(store.get("large"), "9223372036854775807");
}

TYPED_TEST(StoreTest, ReadersNeverSeePartialValues) {
  Store& store = this->store();
  const std::string values[] = {std::string(5000, 'a'), std::string(5000, 'b')};
  store.set("key", values[0]);
  std::thread writer([&] {
    for (int i = 0; i < 200; ++i) store.set("key", values[i % 2]);
  });
  for (int i = 0; i < 200; ++i) {
    const std::string value = store.get("key");
    EXPECT_TRUE(value == values[0] || value == values[1]);
  }
  writer.join();
}

using Values = std::vector<std::string>;

/// What `rank` receives, or the message of the Timeout.
Values exchanged(Store& store, int rank, int world, const std::string& mine, Deadline deadline = late()) {
  Values received;
  try {
    exchange(store, "prefix", rank, world, mine, deadline,
             [&](int, const std::string& value) { received.push_back(value); });
  } catch (const Timeout& error) {
    return {error.what()};
  }
  return received;
}

TYPED_TEST(StoreTest, ExchangesValuesOfAnyLength) {
  Values values;
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, Store::kMaxValueBytes, std::size_t{40'000},
                                   std::size_t{30'000}, Store::kMaxValueBytes - 1, std::size_t{7}})
    values.push_back(std::string(length, static_cast<char>('0' + values.size())));
  const auto world = static_cast<int>(values.size());
  std::vector<std::thread> threads;
  std::vector<Values> received(values.size());
  for (int rank = 0; rank < world; ++rank)
    threads.emplace_back([&, rank] {
      const auto index = static_cast<std::size_t>(rank);
      received[index] = exchanged(this->store(), rank, world, values[index]);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(received, ::testing::Each(values));
}

/// One request for all, and not one for each rank.
TEST(Exchange, ReadsWhatRank0HandsOut) {
  MemoryStore all, handed_out;
  const Values values = {"a", "b", "c 1 2", ""};
  for (int rank = 1; rank < 4; ++rank)
    all.set("prefix/" + std::to_string(rank), values[static_cast<std::size_t>(rank)]);
  EXPECT_EQ(exchanged(all, 0, 4, "a"), values);
  handed_out.set("prefix/all/0", all.get("prefix/all/0"));
  EXPECT_EQ(exchanged(handed_out, 2, 4, "c 1 2"), values);
}

TEST(Exchange, ThrowsTheFirstError) {
  MemoryStore full(2);
  full.set("prefix/1", "unsuitable");
  const auto accept = [](int rank, const std::string& value) { check(rank == 0, value); };
  try {
    exchange(full, "prefix", 0, 2, "mine", late(), accept);
    FAIL() << "rank 1 was accepted";
  } catch (const InvalidArgument& error) {  // and not StoreFull: rank 0 cannot hand out its list
    EXPECT_THAT(error.what(), ::testing::StartsWith("unsuitable"));
  }
}

/// Rank 0 has been stopped: its store takes what is set, and then does not answer.
class SilentStore final : public Store {
 public:
  void set(const std::string&, const std::string&) override {}
  std::string wait(const std::string&, Deadline) override { throw Timeout({.peer = 0}, "no answer of rank 0"); }
  std::string get(const std::string& key) override { return wait(key, soon()); }
  std::int64_t add(const std::string&, std::int64_t) override { return 0; }
  void remove(const std::string&) override {}
};

TEST(Exchange, DoesNotBlameRanksForAStoreThatDoesNotAnswer) {
  SilentStore store;
  EXPECT_EQ(exchanged(store, 1, 4, ""), Values{"no answer of rank 0"});
}

TEST(Exchange, NamesTheMissingRanks) {
  for (const int absent : {0, 2}) {
    MemoryStore store;
    std::vector<std::thread> threads;
    std::vector<Values> received(4);
    for (int rank = 0; rank < 4; ++rank)
      if (rank != absent)
        threads.emplace_back(
            [&, rank] { received[static_cast<std::size_t>(rank)] = exchanged(store, rank, 4, "", soon()); });
    for (std::thread& thread : threads) thread.join();
    for (int rank = 0; rank < 4; ++rank)
      if (rank != absent) {
        EXPECT_THAT(received[static_cast<std::size_t>(rank)],
                    ::testing::ElementsAre(HasSubstr("for rank " + std::to_string(absent) + " of a world of 4")));
      }
  }
}

}  // namespace
}  // namespace gradring::comm
