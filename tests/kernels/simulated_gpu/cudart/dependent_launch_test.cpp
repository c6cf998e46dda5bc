// SPDX-License-Identifier: Apache-2.0
// Programmatic dependent launch: what a kernel does before griddepcontrol.wait may meet the kernel before it.
#include <array>
#include <string>

#include "tests/kernels/simulated_gpu/cudart/cudart_test.h"
#include "tests/kernels/simulated_gpu/cudart/launched_kernels.h"

namespace gradring::tests {
namespace {

/// to[0] = from[0] + 1: all threads load, the first one stores. With these instructions before the load, and between it
/// and the store.
std::string add_one(const char* name, const std::string& before, const char* between) {
  return std::string(".visible .entry ") + name + R"((.param .u64 to, .param .u64 from) {
  .reg .u64 %rd<5>;
  .reg .u32 %r<4>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [to];
  ld.param.u64 %rd2, [from];
  mov.u32 %r3, %tid.x;
  setp.eq.u32 %p1, %r3, 0;
)" + before +
         "\n  ld.global.u32 %r1, [%rd2];\n" + between +
         "\n  add.u32 %r2, %r1, 1;\n  @%p1 st.global.u32 [%rd1], %r2;\n  ret;\n}\n";
}

constexpr const char* kTrigger = "  griddepcontrol.launch_dependents;";
constexpr const char* kWait = "  griddepcontrol.wait;";
/// By one warp, for the block.
constexpr const char* kWaitOfOne = R"(
  setp.ge.u32 %p1, %r3, 32;
  @%p1 bra $behind;
  griddepcontrol.wait;
$behind:
  bar.sync 0;
  setp.eq.u32 %p1, %r3, 0;
)";

enum Kernel { never, at_first, late, one, triggers_first, triggers_behind_wait, kKernels };

class DependentLaunch : public Cudart {
 protected:
  void SetUp() override {
    Cudart::SetUp();
    static const auto kernels = [] {
      const std::string waits_first = std::string(kWait) + "\n" + kTrigger;
      const std::string triggers_first = std::string(kTrigger) + "\n" + kWait;
      RegisteredKernels made({{90, module_for("sm_90", add_one("never", "", "") + add_one("at_first", kWait, "") +
                                                           add_one("late", "", kWait) + add_one("one", kWaitOfOne, "") +
                                                           add_one("triggers_first", triggers_first, "") +
                                                           add_one("triggers_behind_wait", waits_first, ""))}});
      return std::array<const void*, kKernels>{made.kernel("never"),          made.kernel("at_first"),
                                               made.kernel("late"),           made.kernel("one"),
                                               made.kernel("triggers_first"), made.kernel("triggers_behind_wait")};
    }();
    kernels_ = kernels;
    stream_ = make_stream();
    a_ = allocate(1, stream_);
    b_ = allocate(1, stream_);
    c_ = allocate(1, stream_);
    d_ = allocate(1, stream_);
    for (std::uint32_t* const data : {a_, b_, c_, d_}) ok(cudaMemsetAsync(data, 0, 4, stream_));
  }

  /// *to = *from + 1, in a launch that may begin early unless it is `serial`.
  void launch(Kernel kernel, std::uint32_t* to, const std::uint32_t* from, bool serial = false) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = serial ? 0 : 1;
    cudaLaunchConfig_t config{};
    config.gridDim = {1};
    config.blockDim = {64};
    config.stream = stream_;
    config.attrs = &attribute;
    config.numAttrs = 1;
    void* arguments[] = {static_cast<void*>(&to), static_cast<void*>(&from)};
    ok(cudaLaunchKernelExC(&config, kernels_[kernel], arguments));
  }
  void expect_race(const std::string& one, const std::string& other) {
    EXPECT_EQ(wait(stream_), cudaErrorLaunchFailure);
    expect_fault("race with a launch that may still run: 4 bytes at ");
    expect_fault("   written by " + one + ", ");
    expect_fault("   read by " + other + ", ");
    expect_fault("the second of these is not behind griddepcontrol.wait");
  }

  std::array<const void*, kKernels> kernels_{};
  cudaStream_t stream_ = nullptr;
  std::uint32_t *a_ = nullptr, *b_ = nullptr, *c_ = nullptr, *d_ = nullptr;
};

TEST_F(DependentLaunch, MustWaitForWhatTheLaunchBeforeItWrites) {
  launch(triggers_first, b_, a_);
  launch(never, c_, b_);
  expect_race("triggers_first", "never");
}

TEST_F(DependentLaunch, MustWaitBeforeItReads) {
  launch(triggers_first, b_, a_);
  launch(late, c_, b_);
  expect_race("triggers_first", "late");
}

TEST_F(DependentLaunch, MustWaitBeforeItWritesWhatTheLaunchBeforeItReads) {
  launch(triggers_first, b_, a_);
  launch(never, a_, c_);
  EXPECT_EQ(wait(stream_), cudaErrorLaunchFailure);
  expect_fault("   read by triggers_first, ");
  expect_fault("   written by never, ");
}

TEST_F(DependentLaunch, IsInOrderBehindItsWait) {
  for (const Kernel kernel : {at_first, one, triggers_first, triggers_behind_wait}) {
    launch(triggers_first, b_, a_);
    launch(kernel, c_, b_);
    finish(stream_);
  }
}

TEST_F(DependentLaunch, MayBeginWithWhatNobodyWrites) {
  launch(triggers_first, b_, a_);
  launch(late, c_, a_);
  launch(never, d_, a_, true);
  finish(stream_);
}

/// cudaTriggerProgrammaticLaunchCompletion in CUDA's cuda_device_runtime_api.h: without it, the next launch begins "after
/// all warps finish execution but before the grid completes".
TEST_F(DependentLaunch, MustWaitForALaunchThatDoesNotTrigger) {
  launch(at_first, b_, a_);
  launch(never, c_, b_);
  expect_race("at_first", "never");
}

TEST_F(DependentLaunch, NeedsNoWaitWithoutTheAttribute) {
  launch(triggers_first, b_, a_);
  launch(never, c_, b_, true);
  finish(stream_);
}

/// The launch two before it.
TEST_F(DependentLaunch, MayStillRunWhenTheNextButOneBegins) {
  launch(triggers_first, b_, a_);
  launch(triggers_first, c_, a_);
  launch(never, d_, b_);
  expect_race("triggers_first", "never");
}

TEST_F(DependentLaunch, HasEndedWhenItIsWaitedForBeforeTheTrigger) {
  for (const Kernel kernel : {triggers_behind_wait, at_first, late}) {
    launch(triggers_first, b_, a_);
    launch(kernel, c_, a_);
    launch(never, d_, b_);
    finish(stream_);
  }
}

TEST_F(DependentLaunch, IsInOrderBehindACopy) {
  ok(cudaMemcpyAsync(b_, a_, 4, cudaMemcpyDefault, stream_));
  launch(never, c_, b_);
  finish(stream_);
}

TEST_F(DependentLaunch, IsCheckedInGraphs) {
  for (const Kernel kernel : {at_first, late}) {
    ok(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    launch(triggers_first, b_, a_);
    launch(kernel, c_, b_);
    cudaGraph_t graph = nullptr;
    ok(cudaStreamEndCapture(stream_, &graph));
    cudaGraphExec_t executable = nullptr;
    ok(cudaGraphInstantiate(&executable, graph, 0));
    ok(cudaGraphLaunch(executable, stream_));
    if (kernel == at_first) finish(stream_);
  }
  expect_race("triggers_first", "late");
}

}  // namespace
}  // namespace gradring::tests
