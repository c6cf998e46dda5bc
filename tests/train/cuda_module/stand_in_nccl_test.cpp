// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "comm/transport/nccl/nccl_api.h"
#include "kernels/host/host_device.h"
#include "tests/support/temp_folder.h"

namespace gradring {
namespace {

/// The stand-in reports version 2.28, which has ncclCommRevoke.
TEST(StandInNccl, RevokeEndsWaitingOperations) {
  const tests::TempFolder messages;
  ::setenv("GRADRING_STAND_IN_NCCL", messages.path().c_str(), 1);
  const comm::nccl::Api api = comm::nccl::load_library(GRADRING_STAND_IN_FOLDER "/libnccl.so.2");
  ncclUniqueId id{};
  ASSERT_EQ(api.get_unique_id(&id), ncclSuccess);
  ::unsetenv("GRADRING_STAND_IN_NCCL");
  ASSERT_TRUE(api.comm_revoke);

  ncclComm_t comm = nullptr;
  api.comm_init_rank_config(&comm, 2, id, 0, nullptr);
  kernels::HostDevice device;
  const auto stream = device.make_stream(kernels::StreamMode::asynchronous);
  float received = 0;
  api.group_start();
  api.recv(&received, 1, ncclFloat32, 1, comm, static_cast<cudaStream_t>(stream->native_handle()));
  api.group_end();
  EXPECT_EQ(api.comm_revoke(comm, NCCL_REVOKE_DEFAULT), ncclSuccess);
  EXPECT_NO_THROW(stream->synchronize(Deadline::after(std::chrono::seconds(60))));
  ncclResult_t state = ncclInProgress;
  EXPECT_EQ(api.comm_get_async_error(comm, &state), ncclSuccess);
  EXPECT_EQ(state, ncclSuccess);
  EXPECT_EQ(api.comm_abort(comm), ncclSuccess);
}

}  // namespace
}  // namespace gradring
