// SPDX-License-Identifier: Apache-2.0
// What kernels are found to do: faults, findings, and what was written by whom.
#include "tests/kernels/simulated_gpu/cudart/launched_kernels.h"

namespace gradring::tests {
namespace {

using simulated_gpu::runtime;
using testing::AllOf;
using testing::HasSubstr;

/// From the second launch on it is known that they write the allocation, so each byte that they read counts.
TEST_F(Kernels, MayReadAroundWhatAnotherStreamWrites) {
  std::uint32_t* data = allocate(64, stream_);
  ok(cudaMemsetAsync(data, 0, 256, stream_));
  const auto read_apart = [&] { ok(launch(read_apart_, config(stream_, {1}, {2}), {static_cast<void*>(&data)})); };
  read_apart();
  finish(stream_);
  const cudaStream_t other = make_stream();
  read_apart();
  ok(cudaMemsetAsync(data + 20, 1, 4, other));
  finish(stream_);
  finish(other);
}

TEST_F(Kernels, FaultsFailTheDeviceAndNameTheKernel) {
  std::uint32_t* const data = allocate(2, stream_);
  ok(launch_add_one(data, data + 1));  // which nobody wrote
  EXPECT_EQ(wait(stream_), cudaErrorLaunchFailure);
  EXPECT_EQ(launch_add_one(data, data), cudaErrorLaunchFailure);
  EXPECT_THAT(
      cudaGetErrorString(cudaErrorLaunchFailure),
      AllOf(HasSubstr("unspecified launch failure"), HasSubstr("add_one"), HasSubstr("ld.global.u32 %r1, [%rd4];")));
  expect_fault("cuda:0: ");
  EXPECT_EQ(runtime().faults.texts().size(), 1u);
}

TEST_F(Kernels, FaultsOfAddressesHaveTheErrorsOfCuda) {
  for (const auto& [offset, error] :
       {std::pair(2, cudaErrorMisalignedAddress), std::pair(8, cudaErrorIllegalAddress)}) {
    restart({});
    auto* const data = reinterpret_cast<std::byte*>(allocate(2, stream_ = make_stream()));
    ok(launch_add_one(reinterpret_cast<std::uint32_t*>(data), reinterpret_cast<std::uint32_t*>(data + offset)));
    EXPECT_EQ(wait(stream_), error);
  }
  expect_fault("out of bounds");
}

/// What a GPU would let pass does not stop the program, if that was asked for.
TEST_F(Kernels, GoOnAfterFindings) {
  using simulated_gpu::FindingKind;
  restart({.findings = {.goes_on = true}});
  const cudaStream_t stream = make_stream();
  const cudaStream_t other = make_stream();
  std::uint32_t* const data = allocate(2, stream);
  for (int i = 0; i < 3; ++i) ok(launch_add_one(data, data + 1, stream));  // which nobody wrote
  finish(stream);
  ok(launch_add_one(data, data + 1, stream));
  ok(launch_add_one(data, data + 1, other));
  finish(stream);
  finish(other);
  expect_fault("cuda:0: global memory is read before it is written");
  expect_fault("race between streams");
  const auto findings = runtime().faults.all();
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].kind, FindingKind::not_written);
  EXPECT_EQ(findings[0].count, 5u);
  EXPECT_EQ(findings[1].kind, FindingKind::stream_race);
  EXPECT_EQ(findings[1].kernel, "add_one");
  EXPECT_EQ(findings[1].instruction, "st.global.u32 [%rd3], %r2;");
  EXPECT_EQ(findings[1].other.value().kernel, "add_one");
}

void fail_test(void*) { ADD_FAILURE() << "a function of the host behind a failure"; }

TEST_F(Kernels, FaultsStopFunctionsOfTheHost) {
  std::uint32_t* const data = allocate(2, stream_);
  ok(launch_add_one(data, data + 1));
  ok(cudaLaunchHostFunc(stream_, &fail_test, nullptr));
  EXPECT_EQ(wait(stream_), cudaErrorLaunchFailure);
  expect_fault("cuda:0: ");
}

TEST_F(Kernels, AreNamedByAWatchOfWhatTheyWrite) {
  const simulated_gpu::SimulatedGpu& gpus = *gradring_simulated_gpu();
  std::uint32_t* const data = allocate(2, stream_);
  ok(cudaMemsetAsync(data, 0, 8, stream_));
  finish(stream_);
  gpus.watch(data, 4);
  ok(cudaMemsetAsync(data + 1, 0, 4, stream_));
  finish(stream_);
  EXPECT_EQ(gpus.watched().count, 0u);
  ok(launch_add_one(data, data + 1));
  finish(stream_);
  EXPECT_EQ(gpus.watched().count, 1u);
  EXPECT_THAT(gpus.watched().last, AllOf(HasSubstr("thread (0, 0, 0) of block (0, 0, 0)\n   in add_one"),
                                         HasSubstr("st.global.u32 [%rd3], %r2;")));
  ok(cudaMemsetAsync(data, 0, 4, stream_));
  finish(stream_);
  EXPECT_EQ(gpus.watched().last, "cudaMemsetAsync");
  EXPECT_EQ(gpus.watched().count, 2u);
  gpus.watch(nullptr, 0);
}

}  // namespace
}  // namespace gradring::tests
