// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

#include "comm/transports/nccl/nccl_api.h"
#include "kernels/base/error.h"
#include "kernels/host/host_device.h"
#include "tests/train/core/cuda_module/stand_in_messages.h"

namespace gradring {
namespace {

constexpr int kRanks = 2;

/// Two ranks in one process, each with a stream.
class StandInNccl : public testing::Test {
 protected:
  StandInNccl() {
    const ncclUniqueId id = messages_.make_unique_id(api_);
    for (int rank = 0; rank < kRanks; ++rank) {
      api_.comm_init_rank_config(&comms_[rank], kRanks, id, rank, nullptr);
      streams_.push_back(device_.make_stream(kernels::StreamMode::asynchronous));
    }
  }
  ~StandInNccl() override {
    for (ncclComm* comm : comms_) EXPECT_EQ(api_.comm_abort(comm), ncclSuccess);
  }
  cudaStream_t stream(int rank) { return static_cast<cudaStream_t>(streams_[rank]->native_handle()); }
  void finish(int rank) { streams_[rank]->synchronize(Deadline::after(std::chrono::seconds(60))); }

  const tests::StandInMessages messages_;
  const comm::nccl::Api api_ = comm::nccl::load_library(GRADRING_STAND_IN_FOLDER "/libnccl.so.2");
  kernels::HostDevice device_;
  std::vector<std::unique_ptr<kernels::Stream>> streams_;
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
