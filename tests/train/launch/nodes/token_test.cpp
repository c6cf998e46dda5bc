// SPDX-License-Identifier: Apache-2.0
// Only agents that know the token may join, and neither the run id nor any message reveals it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/sha.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <fstream>
#include <set>

#include "comm/sockets/handshake.h"
#include "comm/sockets/socket_address.h"
#include "kernels/base/error.h"
#include "tests/train/launch/nodes/nodes_fixture.h"
#include "tests/train/launch/nodes/recording_proxy.h"
#include "train/launch/nodes/token.h"

namespace gradring::train {
namespace {

using comm::tcp::Handshake;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class Token : public Nodes {
 protected:
  /// Whether the leader admits an agent with this token.
  bool is_admitted(const comm::tcp::RunToken& token) const {
    const comm::tcp::Identity self{.rank = 1, .world_size = 1 << 20, .token = token};
    const auto deadline = Deadline::after(std::chrono::seconds(20));
    Handshake handshake =
        Handshake::dial(comm::tcp::begin_connect({"127.0.0.1", static_cast<std::uint16_t>(port_)}), self, 0, deadline);
    auto state = handshake.advance();
    for (; state == Handshake::State::going; state = handshake.advance()) {
      pollfd ready = {handshake.fd(), handshake.interest(), 0};
      ::poll(&ready, 1, 100);
    }
    return state == Handshake::State::proven;
  }
  bool waits(std::size_t node) {
    return eventually([&] { return agent(node).errors().find("waiting for node") != std::string::npos; });
  }
};

TEST_F(Token, IsGeneratedForAgentsOfTheSameHost) {
  start_all({1, 1}, {"exit=0"});
  EXPECT_THAT(codes(), Each(0)) << said();
  EXPECT_THAT(agent(0).errors(), HasSubstr("GRADRING_TOKEN is not set: generated a token"));
  EXPECT_THAT(agent(1).errors(), Not(HasSubstr("GRADRING_TOKEN")));
  EXPECT_TRUE(std::filesystem::is_empty(runtime_.path()));
}

TEST_F(Token, IsGeneratedInAPrivateFile) {
  start(0, 2, 1, {"exit=0"});
  ASSERT_TRUE(waits(0));
  ASSERT_FALSE(std::filesystem::is_empty(runtime_.path()));
  const std::filesystem::path link = std::filesystem::directory_iterator(runtime_.path())->path();
  struct stat folder {
  }, file{};
  ASSERT_EQ(::stat(link.c_str(), &folder), 0);
  ASSERT_EQ(::stat((link / "token").c_str(), &file), 0);
  EXPECT_EQ(folder.st_mode & 0777, mode_t(0700));
  EXPECT_EQ(file.st_mode & 0777, mode_t(0600));
  agent(0).launcher->send(SIGINT);
  EXPECT_EQ(agent(0).launcher->wait(), 130);
}

TEST_F(Token, ThatIsAFifoIsNotWaitedFor) {
  start(0, 2, 1, {"exit=0"});
  ASSERT_TRUE(waits(0));
  const std::filesystem::path link = std::filesystem::directory_iterator(runtime_.path())->path();
  std::filesystem::remove(link / "token");
  ASSERT_EQ(::mkfifo((link / "token").c_str(), 0600), 0);
  EXPECT_FALSE(SharedToken::find({.master_port = port_}, PrivateFolder(runtime_.path())));
  agent(0).launcher->send(SIGINT);
  EXPECT_EQ(agent(0).launcher->wait(), 130);
}

TEST_F(Token, OfAKilledLeaderIsNotUsedForTheNext) {
  start(0, 2, 1, {"exit=0"});
  ASSERT_TRUE(waits(0));
  const auto found = [&] { return SharedToken::find({.master_port = port_}, PrivateFolder(runtime_.path())); };
  EXPECT_TRUE(found());
  const auto children = children_of(agent(0).launcher->pid());
  ASSERT_EQ(children.size(), 1u) << "the reaper";
  signal_process(children[0], SIGSTOP);  // delays its cleanup
  agent(0).launcher->send(SIGKILL);
  EXPECT_EQ(agent(0).launcher->wait(), -SIGKILL);
  EXPECT_FALSE(found());
  EXPECT_FALSE(std::filesystem::is_empty(runtime_.path()));
  signal_process(children[0], SIGCONT);
  EXPECT_TRUE(eventually([&] { return std::filesystem::is_empty(runtime_.path()); }))
      << "the reaper has not cleaned up";
  EXPECT_TRUE(eventually([&] { return processes_with(agent(0).folder.mark()).empty(); }));  // which also holds the port
  start(1, 2, 1, {"exit=0"});
  start(0, 2, 1, {"exit=0"});
  EXPECT_EQ(agent(2).launcher->wait(), 0) << said();
  EXPECT_EQ(agent(1).launcher->wait(), 0) << said();
}

TEST_F(Token, CannotBeDerivedFromTheRunId) {
  start(0, 2, 1, {"exit=0"}, {"--rdzv-id=known"});
  ASSERT_TRUE(waits(0));
  const std::string text = "gradring run known";  // the secret of runs without a token in earlier versions
  std::string digits;
  unsigned char digest[SHA256_DIGEST_LENGTH];
  ::SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  for (const unsigned char byte : digest) digits += fmt::format("{:02x}", byte);
  EXPECT_FALSE(is_admitted(comm::tcp::RunToken::parse(digits)));
  EXPECT_FALSE(is_admitted(agents_secret({.run_id = "known", .token = "known"})));
  agent(0).launcher->send(SIGINT);
  EXPECT_EQ(agent(0).launcher->wait(), 130);
}

TEST_F(Token, IsRequiredIfTheLeaderIsAnotherHost) {
  for (const char* leader : {"--master-addr=192.0.2.1", "--master-addr=2001:db8::7"}) {  // reserved for documentation
    Agent& lonely = start(1, 2, 1, {"exit=0"}, {leader});
    EXPECT_EQ(lonely.launcher->wait(), 2);
    EXPECT_THAT(lonely.errors(), HasSubstr("set it to the same value on every node, such as one that `openssl "
                                           "rand -hex 32` has printed"));
  }
}

TEST_F(Token, WithAnotherValueIsRejected) {
  start(0, 2, 1, {"exit=0"}, {}, {"GRADRING_TOKEN=one of sixteen characters"});
  ASSERT_TRUE(waits(0));
  Agent& other = start(1, 2, 1, {"exit=0"}, {}, {"GRADRING_TOKEN=another of sixteen characters"});
  EXPECT_EQ(other.launcher->wait(), 2);
  EXPECT_THAT(other.errors(), HasSubstr("GRADRING_TOKEN must be the same on all nodes"));
  Agent& same = start(1, 2, 1, {"exit=0"}, {}, {"GRADRING_TOKEN=one of sixteen characters"});
  EXPECT_EQ(same.launcher->wait(), 0) << same.errors();
  EXPECT_EQ(agent(0).launcher->wait(), 0);
}

TEST_F(Token, CanBeReadFromAFile) {
  const std::filesystem::path file = runtime_.path() / "mine";
  std::ofstream(file) << "one of sixteen characters\n";
  start(0, 2, 1, {"exit=0"}, {}, {"GRADRING_TOKEN=one of sixteen characters"});
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  Agent& open = start(1, 2, 1, {"exit=0"}, {}, {"GRADRING_TOKEN_FILE=" + file.string()});
  EXPECT_EQ(open.launcher->wait(), 2);
  EXPECT_THAT(open.errors(), HasSubstr("GRADRING_TOKEN_FILE: " + file.string() + " has mode 0644"));
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  Agent& closed = start(1, 2, 1, {"exit=0"}, {}, {"GRADRING_TOKEN_FILE=" + file.string()});
  EXPECT_EQ(closed.launcher->wait(), 0) << closed.errors();
  EXPECT_EQ(agent(0).launcher->wait(), 0);
}

TEST_F(Token, IsRejectedIfItIsShort) {
  const std::filesystem::path file = runtime_.path() / "mine";
  std::ofstream(file) << "fifteen letters\n";
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  for (const std::string& token :
       {std::string("GRADRING_TOKEN=fifteen letters"), "GRADRING_TOKEN_FILE=" + file.string()}) {
    Agent& agent = start(0, 2, 1, {"exit=0"}, {}, {token});
    EXPECT_EQ(agent.launcher->wait(), 2);
    EXPECT_THAT(agent.errors(), HasSubstr(token.substr(0, token.find('=')) + ": the token has 15 characters"));
  }
}

TEST_F(Token, IsHiddenFromWorkers) {
  const std::filesystem::path file = runtime_.path() / "mine";
  std::ofstream(file) << "secret of these tests\n";
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  start(0, 2, 1, {"dump=env"}, {}, {"GRADRING_TOKEN=secret of these tests"});
  start(1, 2, 1, {"dump=env"}, {}, {"GRADRING_TOKEN_FILE=" + file.string()});
  EXPECT_THAT(codes(), Each(0)) << said();
  for (const std::size_t node : {0u, 1u}) {
    const std::string environment = agent(node).folder.text(fmt::format("env.{}", node));
    EXPECT_THAT(environment, AllOf(HasSubstr("WORLD_SIZE=2\n"), Not(HasSubstr("GRADRING_TOKEN")),
                                   Not(HasSubstr("secret of these tests"))));
  }
}

TEST_F(Token, OfTheRanksIsNewInEachAttemptAndNeverSent) {
  tests::RecordingProxy proxy(port_);
  const Words work = {"@0:token=first", "@1:token=second", "@0:0:exit=7", "@0:sleep"};
  start(0, 2, 1, work, {"--max-restarts=1", "--backoff=0"}, {"GRADRING_TOKEN=secret of these tests"});
  start(1, 2, 1, work, {fmt::format("--master-port={}", proxy.port())}, {"GRADRING_TOKEN=secret of these tests"});
  EXPECT_THAT(codes(), Each(0)) << said();

  const std::string first = agent(0).folder.text("first.0"), second = agent(0).folder.text("second.0");
  EXPECT_THAT(first, MatchesRegex("[0-9a-f]{64}"));
  EXPECT_NE(first, second);
  EXPECT_EQ(agent(1).folder.text("second.1"), second);

  const std::string sent = proxy.bytes();
  EXPECT_THAT(sent, HasSubstr("\"nonce\""));
  const LaunchOptions options{.token = "secret of these tests"};
  for (const std::string& secret :
       {first, second, std::string("secret of these tests"), agents_secret(options).to_text()}) {
    EXPECT_THAT(sent, Not(HasSubstr(secret)));
    if (secret.size() != 64) continue;
    std::string bytes;
    for (std::size_t i = 0; i < secret.size(); i += 2)
      bytes += static_cast<char>(std::stoi(secret.substr(i, 2), nullptr, 16));
    EXPECT_THAT(sent, Not(HasSubstr(bytes)));
  }
}

LaunchOptions run(const std::string& token, const std::string& run_id) { return {.run_id = run_id, .token = token}; }

TEST(NodeSecrets, DependOnRunTokenAndAttemptOnly) {
  const std::string nonce(64, '0'), next_nonce(64, '1');
  std::set<std::string> secrets;
  for (const auto& options : {run("a", "x"), run("a", "y"), run("b", "x")}) {
    EXPECT_EQ(agents_secret(options).to_text(), agents_secret(options).to_text());
    EXPECT_EQ(ranks_secret(options, nonce).to_text(), ranks_secret(options, nonce).to_text());
    secrets.insert(agents_secret(options).to_text());
    secrets.insert(ranks_secret(options, nonce).to_text());
    secrets.insert(ranks_secret(options, next_nonce).to_text());
  }
  EXPECT_EQ(secrets.size(), 9u);
  EXPECT_NE(random_token(), random_token());
}

TEST(NodeSecrets, RequireAToken) { EXPECT_THROW(agents_secret(run("", "x")), InvalidArgument); }

}  // namespace
}  // namespace gradring::train
