// SPDX-License-Identifier: Apache-2.0
// The NCCL that simulated GPUs execute, on a GPU that is not there. Each test takes a GPU of its own, as faults stay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "comm/transports/nccl/nccl_api.h"
#include "kernels/base/error.h"
#include "tests/support/built_file.h"
#include "train/core/cuda_module/cuda_module.h"

namespace gradring {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class SimulatedNccl : public testing::Test {
 protected:
  SimulatedNccl() {
    ncclUniqueId id{};
    EXPECT_EQ(api_.get_unique_id(&id), ncclSuccess);
    api_.comm_init_rank_config(&comm_, 1, id, 0, nullptr);
  }
  ~SimulatedNccl() override { EXPECT_EQ(api_.comm_abort(comm_), ncclSuccess); }

  /// Of one rank, in place.
  void all_reduce(int gpu, std::size_t bytes, std::size_t count, ncclRedOp_t reduction) {
    const auto device = opened_.module.make_device(gpu);
    const auto stream = device->make_stream(kernels::StreamMode::asynchronous);
    const kernels::Buffer data = device->allocate(bytes);
    stream->enqueue_zero(data.data(), bytes);
    api_.group_start();
    api_.all_reduce(data.data(), data.data(), count, ncclFloat32, reduction, comm_,
                    static_cast<cudaStream_t>(stream->native_handle()));
    api_.group_end();
    stream->synchronize(Deadline::after(std::chrono::minutes(1)));
  }

  const train::SimulatedModule opened_ = train::open_simulated_gpus(tests::built_file(GRADRING_SIMULATED_GPU_MODULE),
                                                                    {.card = "h100", .devices = 3, .threads = 1});
  const comm::nccl::Api api_ = comm::nccl::load_library(tests::built_file(GRADRING_SIMULATED_GPU_MODULE));
  ncclComm_t comm_ = nullptr;
};

TEST_F(SimulatedNccl, ReducesWhatItIsGiven) { EXPECT_NO_THROW(all_reduce(0, 400, 100, ncclSum)); }

TEST_F(SimulatedNccl, NamesTheCallThatReachesBeyondItsMemory) {
  EXPECT_THAT([&] { all_reduce(1, 400, 400, ncclSum); },
              ThrowsMessage<DeviceError>(HasSubstr("ncclAllReduce reads 1600 bytes at ")));
}

TEST_F(SimulatedNccl, RejectsOtherReductionsThanSums) {
  EXPECT_THAT([&] { all_reduce(2, 400, 100, ncclAvg); },
              ThrowsMessage<DeviceError>(HasSubstr("ncclAllReduce: a reduction that is not simulated")));
}

}  // namespace
}  // namespace gradring
