// SPDX-License-Identifier: Apache-2.0
// Ranks of several machines, played by threads that know each other's address as 127.0.0.1 only.
#include "train/core/setup/tcp_rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <map>
#include <thread>

#include "comm/sockets/socket_address.h"
#include "comm/transport/error.h"
#include "tests/data/support/message_of.h"
#include "train/launch/workers/host.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kJoinTimeout = 50s;

VariableLookup with_token(const std::string& token) {
  return [token](const std::string& name) {
    return name == "GRADRING_TOKEN" && !token.empty() ? std::optional(token) : std::nullopt;
  };
}

struct EndpointCase {
  std::string name;
  WorkerEnvironment environment;
  std::string expected;  ///< to_string(), or a part of the error
};

TEST(StoreEndpoint, FollowsFromTheEnvironment) {
  const EndpointCase cases[] = {
      {"MASTER_PORT", {.world_size = 2, .master_addr = "a", .master_port = 7}, "a:7"},
      {"torchrun listens there",
       {.world_size = 2, .master_addr = "a", .master_port = 7, .use_agent_store = true},
       "a:8"},
      {"GRADRING_RENDEZVOUS_PORT",
       {.world_size = 2, .master_addr = "a", .master_port = 7, .rendezvous_port = 9, .use_agent_store = true},
       "a:9"},
      {"IPv6", {.world_size = 2, .master_addr = "[fd00::1]", .master_port = 7}, "[fd00::1]:7"},
      {"several addresses",
       {.world_size = 2, .master_addr = "10.0.0.1,10.1.0.1", .master_port = 7},
       "10.0.0.1,10.1.0.1:7"},
      {"unknown host", {.world_size = 2, .master_addr = ""}, "set MASTER_ADDR for all ranks"},
      {"no port", {.world_size = 2, .master_addr = "a", .master_port = 0}, "MASTER_PORT=0 leaves no port"},
      {"no port above",
       {.world_size = 2, .master_addr = "a", .master_port = 65535, .use_agent_store = true},
       "MASTER_PORT=65535 leaves no port for the ranks' store, which is one above it"},
  };
  for (const auto& [name, environment, expected] : cases) try {
      EXPECT_EQ(store_endpoint(environment).to_string(), expected) << name;
    } catch (const EnvironmentError& error) {
      EXPECT_THAT(error.what(), HasSubstr(expected)) << name;
    }
  EXPECT_THAT(store_endpoint({.master_addr = "a,b"}).hosts, ElementsAre("a", "b"));
}

class TcpRendezvousTest : public ::testing::Test {
 protected:
  WorkerEnvironment rank(int rank, int world_size = 2) const {
    return {.rank = rank, .world_size = world_size, .master_addr = "127.0.0.1", .master_port = port_};
  }
  std::future<TcpRendezvous> join(const WorkerEnvironment& environment,
                                  std::chrono::milliseconds timeout = kJoinTimeout,
                                  const std::string& token = "the token of these ranks") const {
    return std::async(std::launch::async, [=] { return join_over_tcp(environment, timeout, with_token(token)); });
  }

  const int port_ = free_tcp_port();
};

TEST_F(TcpRendezvousTest, GivesAllRanksOneStoreAndOneToken) {
  auto first = join(rank(0, 3)), second = join(rank(1, 3)), third = join(rank(2, 3));
  const TcpRendezvous ranks[] = {first.get(), second.get(), third.get()};
  ranks[2].store->set("key", "value");
  for (const TcpRendezvous& one : ranks) {
    EXPECT_EQ(one.store->get("key"), "value");
    EXPECT_EQ(one.address, "127.0.0.1");
    EXPECT_EQ(one.token.size(), 64u);
    EXPECT_EQ(one.token, ranks[0].token);
  }
}

TEST_F(TcpRendezvousTest, TakesTheAddressThatTheUserNames) {
  WorkerEnvironment zero = rank(0), one = rank(1);
  zero.node_address = "192.0.2.1";
  one.node_address = "192.0.2.2";
  auto first = join(zero), second = join(one);
  const TcpRendezvous ranks[] = {first.get(), second.get()};
  EXPECT_EQ(ranks[0].address, "192.0.2.1");
  EXPECT_EQ(ranks[1].address, "192.0.2.2");
}

TEST_F(TcpRendezvousTest, RequiresAToken) {
  WorkerEnvironment one = rank(1);
  EXPECT_THAT(tests::message_of<EnvironmentError>([&] { join(one, kJoinTimeout, "").get(); }),
              AllOf(HasSubstr("GRADRING_TOKEN is not set"),
                    HasSubstr("2 ranks are on several machines (1 on this one)"), HasSubstr("openssl rand -hex 32")));
  one.launcher = "mpirun";
  EXPECT_THAT(tests::message_of<EnvironmentError>([&] { join(one, kJoinTimeout, "").get(); }),
              HasSubstr("mpirun passes it on with -x GRADRING_TOKEN"));
}

TEST_F(TcpRendezvousTest, RejectsAnotherTokenRunOrWorldSize) {
  auto first = join(rank(0), 3s);
  WorkerEnvironment other_run = rank(1);
  other_run.run_id = "another";
  auto token = join(rank(1), 1s, "the token of another run"), run = join(other_run, 1s), world = join(rank(1, 3), 1s);
  for (auto* one : {&token, &run})
    EXPECT_THAT(tests::message_of<EnvironmentError>([&] { one->get(); }), HasSubstr("rank 0 of another run"));
  EXPECT_THAT(tests::message_of<comm::Timeout>([&] { world.get(); }),
              HasSubstr("expected rank 0 of this run, with the same GRADRING_TOKEN and WORLD_SIZE"));
  EXPECT_THAT(tests::message_of<comm::Timeout>([&] { first.get(); }),
              HasSubstr("rank 0 of 2 waited for a rank of another machine to connect to rank 0 at 0.0.0.0:"));
}

TEST_F(TcpRendezvousTest, SeparatesRunsByRunDirectory) {
  const auto join_in = [this](int number, const std::string& run_dir, std::chrono::milliseconds timeout) {
    return std::async(std::launch::async, [=, this] {
      return join_over_tcp(rank(number), timeout, with_token("the token of both runs"), run_dir);
    });
  };
  auto first = join_in(0, "runs/a", kJoinTimeout);
  EXPECT_THAT(tests::message_of<EnvironmentError>([&] { join_in(1, "runs/b", 1s).get(); }),
              HasSubstr("rank 0 of another run, or of one with another GRADRING_TOKEN, --run-dir"));
  EXPECT_NO_THROW(join_in(1, "runs/a", kJoinTimeout).get());
  EXPECT_NO_THROW(first.get());
}

TEST_F(TcpRendezvousTest, WaitsForARankZeroThatIsLateOnItsHost) {
  const auto on_own_node = [this](int number) {
    WorkerEnvironment environment = rank(number, 3);
    environment.group_rank = number;
    return environment;
  };
  auto second = join(on_own_node(1)), third = join(on_own_node(2));
  std::this_thread::sleep_for(1s);  // they stand in for it by turns
  auto first = join(rank(0, 3));
  for (auto* one : {&first, &second, &third}) EXPECT_NO_THROW(one->get());
}

TEST_F(TcpRendezvousTest, RejectsASecondProcessOfOneRank) {
  auto first = join(rank(0)), second = join(rank(1));
  const TcpRendezvous zero = first.get(), one = second.get();
  EXPECT_THAT(tests::message_of<EnvironmentError>([&] { join(rank(1)).get(); }),
              AllOf(HasSubstr("another process has joined the run"), HasSubstr("as rank 1"),
                    HasSubstr("GRADRING_RENDEZVOUS_PORT")));
}

TEST_F(TcpRendezvousTest, NamesTheVariableOfATakenPort) {
  const UniqueFd other = comm::tcp::listen_at({"0.0.0.0", static_cast<std::uint16_t>(port_)}, 1);
  EXPECT_THAT(tests::message_of<EnvironmentError>([&] { join(rank(0)).get(); }),
              AllOf(HasSubstr("Address already in use"), HasSubstr("set GRADRING_RENDEZVOUS_PORT, for all ranks")));
}

TEST_F(TcpRendezvousTest, TimeoutNamesRankZero) {
  WorkerEnvironment one = rank(1);
  EXPECT_THAT(tests::message_of<comm::Timeout>([&] { join(one, 300ms).get(); }),
              HasSubstr("rank 1 of 2 waited 0.3 s for rank 0 at 127.0.0.1:"));
  one.master_addr = "no..host";
  EXPECT_THAT(tests::message_of<comm::Timeout>([&] { join(one, 300ms).get(); }),
              HasSubstr("cannot resolve the host name 'no..host'"));
}

TEST_F(TcpRendezvousTest, ReportsARankZeroOfMpirunOnAnotherHost) {
  WorkerEnvironment zero = rank(0);
  zero.launcher = "mpirun";
  zero.master_source = "OMPI_MCA_orte_hnp_uri";
  zero.master_addr = "192.0.2.1";
  EXPECT_THAT(tests::message_of<EnvironmentError>([&] { join(zero).get(); }),
              AllOf(HasSubstr("mpirun runs on 192.0.2.1 (OMPI_MCA_orte_hnp_uri), but rank 0 on"),
                    HasSubstr("-x MASTER_ADDR=")));
}

}  // namespace
}  // namespace gradring::train
