// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <random>
#include <thread>

#include "comm/error.h"
#include "comm/rendezvous/unix_store/address.h"
#include "comm/rendezvous/unix_store/client.h"
#include "comm/rendezvous/unix_store/server.h"
#include "kernels/runtime/unique_fd.h"
#include "tests/support/no_more_files.h"
#include "tests/support/temp_folder.h"

namespace gradring::comm {
namespace {

constexpr std::chrono::seconds kPatience(60);

class UnixStoreTest : public ::testing::Test {
 protected:
  /// A client that says what it likes.
  UniqueFd connect() const {
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un address = unix_address(server_->path());
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  static void say(const UniqueFd& socket, std::string_view bytes) {
    // May fail: the server hangs up on nonsense.
    [[maybe_unused]] const ssize_t sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  static void expect_hang_up(const UniqueFd& socket) {
    char byte = 0;
    EXPECT_LE(::recv(socket.get(), &byte, 1, 0), 0) << "the server answered nonsense";
  }

  tests::TempFolder directory_;
  std::unique_ptr<UnixStoreServer> server_ = std::make_unique<UnixStoreServer>(directory_.path());
  UnixStore store_{server_->path(), kPatience};
};

TEST_F(UnixStoreTest, LiesWhereOnlyThisUserCanEnter) {
  struct stat status {};
  ASSERT_EQ(::stat(server_->path().parent_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(UnixStoreTest, LeavesNothingBehind) {
  store_.set("key", "value");
  server_.reset();
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(UnixStoreTest, HangsUpOnNonsense) {
  using namespace std::string_literals;
  for (const std::string& nonsense : {"\xff\xff\xff\xff"s, "GET / HTTP/1.1\r\n\r\n"s, "\0\0\0\0"s, "\2\0\0\0zz"s,
                                      "\2\0\0\0s\xff"s, "\2\0\0\0s\0extra"s}) {
    const UniqueFd socket = connect();
    say(socket, nonsense);
    expect_hang_up(socket);
  }
  store_.set("key", "still served");
  EXPECT_EQ(store_.get("key"), "still served");
}

TEST_F(UnixStoreTest, RefusesAKeyThatItsOwnClientWouldNotSend) {
  const UniqueFd socket = connect();
  say(socket, wire::encode(wire::Request{wire::Verb::set, "", "x"}));
  char buffer[256];
  const ssize_t count = ::recv(socket.get(), buffer, sizeof buffer, MSG_WAITALL);
  ASSERT_GT(count, 5);
  EXPECT_EQ(buffer[4], static_cast<char>(wire::Status::refused));
}

TEST_F(UnixStoreTest, SurvivesRandomBytesFromManyClients) {
  constexpr unsigned kSeed = 4711;
  RecordProperty("seed", static_cast<int>(kSeed));
  std::mt19937 random(kSeed);
  for (int client = 0; client < 300; ++client) {
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (bytes.size() > 4 && client % 2 == 0) bytes.replace(1, 3, std::string(3, '\0'));  // a length that is allowed
    say(connect(), bytes);
  }
  EXPECT_EQ(store_.add("count", 1), 1) << "seed " << kSeed;
}

TEST_F(UnixStoreTest, ServesOthersWhileClientsSayNothing) {
  std::vector<UniqueFd> silent;
  for (int client = 0; client < 200; ++client) {
    silent.push_back(connect());
    if (client % 2 == 0) say(silent.back(), std::string_view("\x10\0\0\0s", 5));  // half a request
  }
  store_.set("key", "value");
  EXPECT_EQ(store_.get("key"), "value");
}

TEST_F(UnixStoreTest, ForgetsWhoHangsUpWhileWaiting) {
  {
    const UniqueFd socket = connect();
    say(socket, wire::encode(wire::Request{wire::Verb::wait, "key", ""}));
    store_.set("other", "1");  // the server has seen the wait by now
  }
  store_.set("key", "value");
  EXPECT_EQ(store_.get("key"), "value");
}

TEST_F(UnixStoreTest, AServerThatEndsIsReportedToWhoWaits) {
  std::exception_ptr error;
  std::thread waiting([&] {
    try {
      store_.wait("never", Deadline::after(kPatience));
    } catch (...) {
      error = std::current_exception();
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  server_.reset();
  waiting.join();
  // Either it was cut off, or it came when the socket was gone already and waited for one until... it is gone for good.
  ASSERT_TRUE(error);
  EXPECT_THROW(std::rethrow_exception(error), CommError);
}

TEST_F(UnixStoreTest, LetsInWhoCameWhileItHadNoDescriptorLeft) {
  store_.set("key", "value");
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = unix_address(server_->path());
  {
    const tests::NoMoreFiles limit;
    ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    say(socket, wire::encode(wire::Request{wire::Verb::get, "key", ""}));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the server turns it away meanwhile, or is late
  }
  char buffer[256];
  ASSERT_EQ(::recv(socket.get(), buffer, sizeof buffer, 0), 10);
  EXPECT_EQ(std::string(buffer + 4, 6), "kvalue");
}

TEST(UnixStore, LeavesNothingBehindWhereItCannotListen) {
  const tests::TempFolder directory;
  const std::filesystem::path deep = directory.path() / std::string(90, 'x');  // too deep for a socket
  std::filesystem::create_directory(deep);
  EXPECT_THROW(UnixStoreServer{deep}, InvalidArgument);
  EXPECT_TRUE(std::filesystem::is_empty(deep));
}

TEST(UnixStore, SaysWhereAServerCannotBe) { EXPECT_THROW(UnixStoreServer{"/no/such/directory"}, DeviceError); }

TEST(UnixStore, WaitsForAServerThatComesLate) {
  const tests::TempFolder directory;
  const std::filesystem::path promised = directory.path() / "store";
  std::string seen;
  std::thread client([&] { seen = UnixStore(promised, kPatience).wait("key", Deadline::after(kPatience)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  UnixStoreServer server(directory.path());
  UnixStore(server.path(), kPatience).set("key", "value");
  std::filesystem::create_hard_link(server.path(), promised);
  client.join();
  EXPECT_EQ(seen, "value");
}

TEST(UnixStore, WithoutAServerSaysWhichStoreItWanted) {
  const tests::TempFolder directory;
  UnixStore store(directory.path() / "nobody", std::chrono::milliseconds(30));
  try {
    store.set("key", "value");
    FAIL() << "there is no server";
  } catch (const Timeout& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("nobody"));
  }
  EXPECT_THROW(UnixStore(std::string(200, 'x')), InvalidArgument);
}

}  // namespace
}  // namespace gradring::comm
