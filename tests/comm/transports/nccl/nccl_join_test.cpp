// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>

#include "comm/transport/error.h"
#include "comm/transports/nccl/nccl_api.h"
#include "kernels/base/error.h"
#include "tests/comm/support/rank_workspace.h"
#include "tests/comm/transports/nccl/nccl_ranks.h"

namespace gradring::comm {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::MatchesRegex;
using ::testing::UnorderedElementsAre;
using tests::NcclRanks;

template <class E>
std::string text_of(const std::exception_ptr& error) {
  if (!error) return "nothing was thrown";
  try {
    std::rethrow_exception(error);
  } catch (const E& thrown) {
    return thrown.what();
  } catch (const std::exception& other) {
    return std::string("another error: ") + other.what();
  }
}

TEST(NcclJoin, MissingLibraryErrorSaysWhatToInstall) {
  try {
    nccl::load_library("libnccl-that-is-not-there.so.2");
    FAIL() << "it was loaded";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("libnccl-that-is-not-there.so.2"));
    EXPECT_THAT(error.what(), HasSubstr("install NCCL"));
  }
}

TEST(NcclJoin, RejectsALibraryWithoutNcclSymbols) { EXPECT_THROW(nccl::load_library("libc.so.6"), DeviceError); }

TEST(NcclJoin, TimeoutNamesTheMissingRank) {
  NcclRanks ranks(2, std::chrono::milliseconds(200));
  try {
    ranks.transport(0);
    FAIL() << "it joined without rank 1";
  } catch (const Timeout& error) {
    EXPECT_EQ(error.peer(), 1);
    EXPECT_THAT(error.what(), HasSubstr("rank 1"));
  }
}

TEST(NcclJoin, RejectsInvalidRanks) {
  NcclRanks ranks(2);
  EXPECT_THROW(ranks.transport(2), InvalidArgument);
  EXPECT_THROW(ranks.transport(-1), InvalidArgument);
}

TEST(NcclJoin, RejectsTwoRanksOnOneGpu) {
  NcclRanks ranks(2);
  ranks.gpu = "0000:3b:00.0";
  for (const std::exception_ptr& error : ranks.errors([](ProcessGroup&) {})) {
    EXPECT_THAT(text_of<DeviceError>(error), HasSubstr("GPU 0000:3b:00.0"));
    EXPECT_THAT(text_of<DeviceError>(error), HasSubstr("--allow-shared-gpu"));
  }
}

TEST(NcclJoin, SharedGpuSetsDistinctHostIds) {
  NcclRanks ranks(2);
  ranks.gpu = "0000:3b:00.0";
  ranks.allow_shared_gpu = true;
  ranks.run([](ProcessGroup& group) {
    tests::RankWorkspace work(group);
    group.all_reduce(work.range(), *work.stream);
  });
  EXPECT_THAT(ranks.environment(), IsSupersetOf({"NCCL_HOSTID=host-0", "NCCL_HOSTID=host-1", "NCCL_IB_DISABLE=1"}));
}

TEST(NcclJoin, SharedGpuUsesTheMultiRankSettingOfNewNccl) {
  NcclRanks ranks(1, std::chrono::seconds(60), {.version = 23000});
  ranks.allow_shared_gpu = true;
  ranks.run([](ProcessGroup&) {});
  EXPECT_THAT(ranks.environment(), Contains("NCCL_MULTI_RANK_GPU_ENABLE=1"));
}

TEST(NcclJoin, RanksOfOneHostUseItsLoopbackInterface) {
  NcclRanks ranks(1);
  ranks.run([](ProcessGroup&) {});
  EXPECT_THAT(ranks.environment(),
              UnorderedElementsAre("NCCL_GRAPH_REGISTER=0", "NCCL_SOCKET_IFNAME==lo", "NCCL_RAS_ENABLE=0"));
}

TEST(NcclJoin, RanksOfSeveralContainersDoNot) {
  NcclRanks ranks(2);
  ranks.adjust = [](int rank, nccl::Dependencies& dependencies) {
    dependencies.namespaces = fmt::format("container {}", rank);
  };
  ranks.run([](ProcessGroup&) {});
  EXPECT_THAT(ranks.environment(), UnorderedElementsAre("NCCL_GRAPH_REGISTER=0", "NCCL_GRAPH_REGISTER=0"));
}

TEST(NcclJoin, KeepsVariablesThatTheUserHasSet) {
  constexpr const char* kName = "GRADRING_TEST_NCCL_VARIABLE";
  const nccl::Dependencies dependencies = nccl::system_dependencies({});
  dependencies.set_default_environment(kName, "ours");
  EXPECT_STREQ(std::getenv(kName), "ours");
  ::setenv(kName, "the user's", 1);
  dependencies.set_default_environment(kName, "ours");
  EXPECT_STREQ(std::getenv(kName), "the user's");
  ::unsetenv(kName);
}

TEST(NcclJoin, KnowsTheNamespacesOfThisProcess) {
  EXPECT_THAT(nccl::system_dependencies({}).namespaces, MatchesRegex("pid:\\[[0-9]+\\]net:\\[[0-9]+\\]"));
}

TEST(NcclJoin, ReportsNcclsLastMessage) {
  NcclRanks ranks(2);
  ranks.make_current = false;
  for (const std::exception_ptr& error : ranks.errors([](ProcessGroup&) {}))
    EXPECT_THAT(text_of<DeviceError>(error), HasSubstr("invalid usage: Duplicate GPU detected"));
}

TEST(NcclJoin, ReportsNcclInitErrors) {
  NcclRanks ranks(1, std::chrono::seconds(60), {.init_fails_for = 0});
  EXPECT_THAT(text_of<DeviceError>(ranks.errors([](ProcessGroup&) {}).front()), HasSubstr("ncclCommInitRankConfig"));
}

TEST(NcclJoin, OtherRanksTimeOutIfOneCannotInitialize) {
  NcclRanks ranks(2, std::chrono::milliseconds(1500), {.init_fails_for = 1});
  const auto errors = ranks.errors([](ProcessGroup&) {});
  EXPECT_THAT(text_of<Timeout>(errors[0]), HasSubstr("NCCL did not connect the 2 ranks in time"));
  EXPECT_THAT(text_of<DeviceError>(errors[1]), HasSubstr("ncclCommInitRankConfig"));
}

}  // namespace
}  // namespace gradring::comm
