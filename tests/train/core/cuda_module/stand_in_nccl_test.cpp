// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "comm/transports/nccl/nccl_api.h"
#include "kernels/base/error.h"
#include "kernels/host/host_device.h"

namespace gradring {
namespace {

constexpr int kRanks = 2;

/// Two ranks in one process, each with a stream.
class StandInNccl : public testing::Test {
 protected:
  StandInNccl() {
    EXPECT_EQ(api_.get_unique_id(&id_), ncclSuccess);
    for (int rank = 0; rank < kRanks; ++rank) {
      api_.comm_init_rank_config(&comms_[rank], kRanks, id_, rank, nullptr);
      streams_.push_back(device_.make_stream(kernels::StreamMode::asynchronous));
    }
  }
  ~StandInNccl() override {
    for (ncclComm* comm : comms_) EXPECT_EQ(api_.comm_abort(comm), ncclSuccess);
    EXPECT_FALSE(std::filesystem::exists(id_.internal)) << "the last rank removes the files";
  }
  /// What lies in the folder of this group.
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(id_.internal)) names.insert(entry.path().filename());
    return names;
  }
  cudaStream_t stream(int rank) { return static_cast<cudaStream_t>(streams_[rank]->native_handle()); }
  void finish(int rank) { streams_[rank]->synchronize(Deadline::after(std::chrono::seconds(60))); }

  const comm::nccl::Api api_ = comm::nccl::load_library(GRADRING_STAND_IN_FOLDER "/libnccl.so.2");
  kernels::HostDevice device_;
  std::vector<std::unique_ptr<kernels::Stream>> streams_;
  ncclUniqueId id_{};
  ncclComm_t comms_[kRanks] = {};
};

/// It reports version 2.28, which has ncclCommRevoke.
TEST_F(StandInNccl, RevokeEndsWaitingOperations) {
  ASSERT_TRUE(api_.comm_revoke);
  float received = 0;
  api_.group_start();
  api_.recv(&received, 1, ncclFloat32, 1, comms_[0], stream(0));
  api_.group_end();
  EXPECT_EQ(api_.comm_revoke(comms_[0], NCCL_REVOKE_DEFAULT), ncclSuccess);
  EXPECT_NO_THROW(finish(0));
  ncclResult_t state = ncclInProgress;
  EXPECT_EQ(api_.comm_get_async_error(comms_[0], &state), ncclSuccess);
  EXPECT_EQ(state, ncclSuccess);
}

/// Both ranks send first, each call in a group of its own: neither reaches its receive.
TEST_F(StandInNccl, SendsWaitForTheirReceives) {
  const auto in_group = [&](const auto& call) {
    api_.group_start();
    call();
    api_.group_end();
  };
  float sent = 1;
  float received[kRanks] = {};
  for (int rank = 0; rank < kRanks; ++rank) {
    in_group([&] { api_.send(&sent, 1, ncclFloat32, 1 - rank, comms_[rank], stream(rank)); });
    in_group([&] { api_.recv(&received[rank], 1, ncclFloat32, 1 - rank, comms_[rank], stream(rank)); });
  }
  EXPECT_THROW(streams_[0]->synchronize(Deadline::after(std::chrono::milliseconds(200))), DeviceError);
  for (ncclComm* comm : comms_) api_.comm_revoke(comm, NCCL_REVOKE_DEFAULT);
  for (int rank = 0; rank < kRanks; ++rank) finish(rank);
}

TEST_F(StandInNccl, KeepsThePartsOfTheLastSumOnly) {
  float memory[kRanks][2] = {{1, 2}, {3, 4}};
  for (int sum = 0; sum < 3; ++sum) {
    for (int rank = 0; rank < kRanks; ++rank) {
      api_.group_start();
      api_.all_reduce(memory[rank], memory[rank], 2, ncclFloat32, ncclSum, comms_[rank], stream(rank));
      api_.group_end();
    }
    for (int rank = 0; rank < kRanks; ++rank) finish(rank);
  }
  EXPECT_THAT(memory[0], testing::ElementsAre(16, 24));
  EXPECT_THAT(memory[1], testing::ElementsAre(16, 24));
  EXPECT_THAT(files(), testing::ElementsAre("joined-0", "joined-1", "sum-2-0", "sum-2-1"));
}

TEST_F(StandInNccl, NamesRanksThatGiveOtherElements) {
  float memory[kRanks][4] = {};
  for (int rank = 0; rank < kRanks; ++rank) {
    api_.group_start();
    api_.all_reduce(memory[rank], memory[rank], rank == 0 ? 1 : 4, ncclFloat32, ncclSum, comms_[rank], stream(rank));
    api_.group_end();
  }
  EXPECT_THAT([&] { finish(0); }, testing::ThrowsMessage<Error>(
                                      testing::HasSubstr("ncclAllReduce: rank 0 gives 1 f32, rank 1 gives 4 f32")));
  EXPECT_THAT([&] { finish(1); }, testing::ThrowsMessage<Error>(
                                      testing::HasSubstr("ncclAllReduce: rank 1 gives 4 f32, rank 0 gives 1 f32")));
}

}  // namespace
}  // namespace gradring
