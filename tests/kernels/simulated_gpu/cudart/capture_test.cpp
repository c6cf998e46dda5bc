// SPDX-License-Identifier: Apache-2.0
// Captures: what CUDA forbids while they last; graphs.
#include "tests/kernels/simulated_gpu/cudart/cudart_test.h"

#include <set>

namespace gradring::tests {
namespace {

class CaptureRules : public Cudart {
 protected:
  void SetUp() override {
    Cudart::SetUp();
    stream_ = make_stream();
    other_ = make_stream();
    event_ = make_event();
    data_ = pinned(4);
    ok(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  }

  cudaError_t end() { return cudaStreamEndCapture(stream_, &graph_); }
  void clear(cudaStream_t stream) { ok(cudaMemsetAsync(data_, 0, 4, stream)); }
  void fork() {
    ok(cudaEventRecord(event_, stream_));
    ok(cudaStreamWaitEvent(other_, event_));
  }
  void join() {
    ok(cudaEventRecord(event_, other_));
    ok(cudaStreamWaitEvent(stream_, event_));
  }
  cudaGraphExec_t instantiate() {
    cudaGraphExec_t executable = nullptr;
    ok(end());
    ok(cudaGraphInstantiate(&executable, graph_, 0));
    ok(cudaGraphDestroy(graph_));
    return executable;
  }

  cudaStream_t stream_ = nullptr, other_ = nullptr;
  cudaEvent_t event_ = nullptr;
  std::uint32_t* data_ = nullptr;
  cudaGraph_t graph_ = nullptr;
};

TEST_F(CaptureRules, ForbidWaitingForTheCapturedStream) {
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(graph_, nullptr);
  expect_fault("cudaStreamQuery: a query of a stream that is captured (cudaErrorStreamCaptureUnsupported)");
  expect_fault("cudaStreamEndCapture: a capture that was invalidated by a query of a stream that is captured");
}

TEST_F(CaptureRules, ForbidQueriesByTheCapturingThread) {
  EXPECT_EQ(cudaStreamQuery(other_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  expect_fault("a call that CUDA forbids while this thread captures a stream");
}

TEST_F(CaptureRules, AllowOtherThreadsWhatTheyForbidTheirOwn) {
  std::thread([&] {
    ok(cudaStreamQuery(other_));
    ok(cudaEventQuery(event_));
    pinned(1);
  }).join();
  ok(end());
}

TEST_F(CaptureRules, InTheGlobalModeForbidAllThreads) {
  ok(end());
  ok(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  std::thread([&] { EXPECT_EQ(cudaEventQuery(event_), cudaErrorStreamCaptureUnsupported); }).join();
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  expect_fault("cudaEventQuery: a call that CUDA forbids all threads during a capture in cudaStreamCaptureModeGlobal");
}

/// However short they are.
TEST_F(CaptureRules, InTheGlobalModeAreBrokenByThreadsThatQueryNowAndThen) {
  ok(end());
  std::jthread watchdog([&](const std::stop_token& stop) {
    for (; !stop.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(20)))
      if (cudaEventQuery(event_) != cudaSuccess) return;
  });
  for (const auto mode : {cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    ok(cudaStreamBeginCapture(stream_, mode));
    ok(end());
  }
  ok(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  expect_fault("cudaStreamEndCapture: a capture that was invalidated by cudaEventQuery");
}

TEST_F(CaptureRules, ForbidPinnedMemory) {
  void* data = nullptr;
  EXPECT_EQ(cudaHostAlloc(&data, 4, cudaHostAllocPortable), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaFreeHost(data_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  expect_fault("cudaHostAlloc: a call that CUDA forbids");
}

TEST_F(CaptureRules, ForbidQueriesOfCapturedEvents) {
  fork();
  std::thread([&] { EXPECT_EQ(cudaEventQuery(event_), cudaErrorCapturedEvent); }).join();
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  expect_fault("cudaEventQuery: a query of an event that was recorded in a capture");
}

TEST_F(CaptureRules, ForbidWaitsForWorkOutside) {
  ok(cudaEventRecord(event_, other_));
  EXPECT_EQ(cudaStreamWaitEvent(stream_, event_), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(cudaMemsetAsync(data_, 0, 4, stream_), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  expect_fault("cudaStreamWaitEvent: a wait of a captured stream for an event that was recorded outside");
}

TEST_F(CaptureRules, ForbidMerging) {
  ok(cudaStreamBeginCapture(other_, cudaStreamCaptureModeThreadLocal));
  ok(cudaEventRecord(event_, other_));
  EXPECT_EQ(cudaStreamWaitEvent(stream_, event_), cudaErrorStreamCaptureMerge);
  EXPECT_EQ(cudaStreamEndCapture(other_, &graph_), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  expect_fault("event of another capture (cudaErrorStreamCaptureMerge)");
}

TEST_F(CaptureRules, ForbidForksThatAreNotJoined) {
  fork();
  clear(other_);
  EXPECT_EQ(end(), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph_, nullptr);
  expect_fault("cudaStreamEndCapture: 1 pieces of captured work that the first stream does not wait for");
}

TEST_F(CaptureRules, ForksWithoutWorkNeedNoJoin) {
  fork();
  ok(end());
  ok(cudaStreamQuery(other_));
}

TEST_F(CaptureRules, MustBeEndedWhereTheyBegan) {
  EXPECT_EQ(cudaStreamEndCapture(other_, &graph_), cudaErrorIllegalState);
  fork();
  EXPECT_EQ(cudaStreamEndCapture(other_, &graph_), cudaErrorStreamCaptureUnmatched);
  std::thread([&] { EXPECT_EQ(end(), cudaErrorStreamCaptureWrongThread); }).join();
  ok(end());
  expect_fault("a stream that joined the capture, which another one began");
  expect_fault("a capture that another thread began");
}

TEST_F(CaptureRules, DoNotNest) {
  EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaErrorIllegalState);
  expect_fault("a stream that is captured already");
}

TEST_F(CaptureRules, EventsOfAnEndedCaptureAreNotWaitedFor) {
  fork();
  ok(end());
  EXPECT_EQ(cudaStreamWaitEvent(other_, event_), cudaErrorInvalidValue);
  expect_fault("an event that was recorded in a capture, which has ended");
  ok(cudaEventRecord(event_, other_));
  ok(cudaStreamWaitEvent(stream_, event_));
}

TEST_F(CaptureRules, DestroyedStreamsInvalidateThem) {
  fork();
  ok(cudaStreamDestroy(other_));
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  expect_fault("a capture that was invalidated by the destruction of a stream");
  ok(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  ok(cudaStreamDestroy(stream_));
  pinned(1);  // nothing is captured any more
}

TEST_F(CaptureRules, StatusIsTold) {
  cudaStreamCaptureStatus status{};
  const auto of = [&](cudaStream_t stream) {
    ok(cudaStreamIsCapturing(stream, &status));
    return status;
  };
  EXPECT_EQ(of(stream_), cudaStreamCaptureStatusActive);
  EXPECT_EQ(of(other_), cudaStreamCaptureStatusNone);
  fork();
  EXPECT_EQ(of(other_), cudaStreamCaptureStatusActive);
  EXPECT_EQ(cudaStreamQuery(other_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(of(stream_), cudaStreamCaptureStatusInvalidated);
  expect_fault("a query of a stream that is captured");
}

TEST_F(CaptureRules, GraphsRunWhatWasCapturedAtEachLaunch) {
  data_[0] = 1;
  ok(cudaMemcpyAsync(data_ + 1, data_, 4, cudaMemcpyDefault, stream_));
  const cudaGraphExec_t graph = instantiate();
  EXPECT_EQ(cudaStreamQuery(stream_), cudaSuccess) << "nothing was enqueued";
  for (std::uint32_t value = 5; value < 8; ++value) {
    data_[0] = value;
    ok(cudaGraphLaunch(graph, stream_));
    finish(stream_);
    EXPECT_EQ(data_[1], value);
  }
  ok(cudaGraphExecDestroy(graph));
  EXPECT_EQ(cudaGraphLaunch(graph, stream_), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGraphDestroy(graph_), cudaErrorInvalidResourceHandle);
  expect_fault("cudaGraphLaunch: an executable graph that was destroyed");
  expect_fault("cudaGraphDestroy: a graph that was destroyed");
}

TEST_F(CaptureRules, GraphsReportAHostThatReadsTheTargetOfACopyTooEarly) {
  ok(cudaMemcpyAsync(data_ + 1, data_, 4, cudaMemcpyDefault, stream_));
  const cudaGraphExec_t graph = instantiate();
  ok(cudaGraphLaunch(graph, stream_));
  finish(stream_);
  EXPECT_EQ(data_[1], 0u);
  ok(cudaGraphLaunch(graph, stream_));
  EXPECT_EQ(data_[1], 0u);
  expect_fault("before cudaMemcpyAsync has written them");
}

TEST_F(CaptureRules, GraphsKeepTheOrderOfTheirBranches) {
  ok(cudaMemsetAsync(data_, 1, 4, stream_));
  fork();
  ok(cudaMemcpyAsync(data_ + 1, data_, 4, cudaMemcpyDefault, other_));
  join();
  ok(cudaMemcpyAsync(data_ + 2, data_ + 1, 4, cudaMemcpyDefault, stream_));
  const cudaGraphExec_t graph = instantiate();
  ok(cudaMemsetAsync(data_, 9, 16, stream_));
  ok(cudaGraphLaunch(graph, stream_));
  ok(cudaMemcpyAsync(data_ + 3, data_ + 2, 4, cudaMemcpyDefault, stream_));
  finish(stream_);
  EXPECT_EQ(data_[3], 0x01010101u);
}

void count(void* place) { ++*static_cast<int*>(place); }

TEST_F(CaptureRules, GraphsCallFunctionsOfTheHost) {
  int calls = 0;
  ok(cudaLaunchHostFunc(stream_, &count, &calls));
  const cudaGraphExec_t graph = instantiate();
  for (int launch = 0; launch < 3; ++launch) ok(cudaGraphLaunch(graph, stream_));
  finish(stream_);
  EXPECT_EQ(calls, 3);
}

TEST_F(CaptureRules, GraphsBelongToTheirDevice) {
  clear(stream_);
  const cudaGraphExec_t graph = instantiate();
  ok(cudaSetDevice(1));
  EXPECT_EQ(cudaGraphLaunch(graph, make_stream()), cudaErrorInvalidValue);
  expect_fault("a graph of cuda:0 on a stream of cuda:1");
}

/// The branches of one graph, which nothing orders: either may be last.
TEST_F(CaptureRules, BranchesOfAGraphHaveNoOrder) {
  std::set<std::uint32_t> values;
  ok(end());
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    restart({.seed = seed, .checks_races = false});  // else the second order would be a fault
    stream_ = make_stream();
    other_ = make_stream();
    event_ = make_event();
    data_ = pinned(1);
    ok(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    fork();
    ok(cudaMemsetAsync(data_, 1, 4, stream_));
    ok(cudaMemsetAsync(data_, 2, 4, other_));
    join();
    ok(cudaGraphLaunch(instantiate(), stream_));
    finish(stream_);
    values.insert(*data_ & 0xff);
  }
  EXPECT_EQ(values, (std::set<std::uint32_t>{1, 2}));
}

TEST_F(CaptureRules, EndWithTheirDevice) {
  expects_faults_ = true;  // what is left
  fork();
  ok(cudaDeviceReset());
  EXPECT_EQ(end(), cudaErrorInvalidResourceHandle);
  const cudaStream_t stream = make_stream();
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess) << "no capture forbids it";
  ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  ok(cudaStreamEndCapture(stream, &graph_));
  expect_fault("at cudaDeviceReset, not given back: 2 of cudaStreamCreateWithFlags");
}

class GraphNodes : public Cudart {
 protected:
  void SetUp() override {
    Cudart::SetUp();
    data_ = pinned(4);
    ok(cudaGraphCreate(&graph_, 0));
    ok(cudaGraphAddMemsetNode(&clear_, graph_, nullptr, 0, &parameters()));
    ok(cudaGraphAddEmptyNode(&empty_, graph_, nullptr, 0));
  }

  const cudaMemsetParams& parameters() {
    parameters_.dst = data_;
    return parameters_;
  }

  std::uint32_t* data_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  cudaGraphNode_t clear_ = nullptr, empty_ = nullptr;
  cudaMemsetParams parameters_{.dst = nullptr, .pitch = 0, .value = 1, .elementSize = 4, .width = 1, .height = 1};
};

TEST_F(GraphNodes, AreChangedByFunctionsForTheirType) {
  cudaGraphExec_t executable = nullptr;
  ok(cudaGraphInstantiate(&executable, graph_, 0));
  ok(cudaGraphMemsetNodeSetParams(clear_, &parameters()));
  ok(cudaGraphExecMemsetNodeSetParams(executable, clear_, &parameters()));
  EXPECT_EQ(cudaGraphMemsetNodeSetParams(empty_, &parameters()), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphExecMemsetNodeSetParams(executable, empty_, &parameters()), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphExecMemcpyNodeSetParams1D(executable, clear_, data_, data_ + 1, 4, cudaMemcpyDefault),
            cudaErrorInvalidValue);
  expect_fault("cudaGraphMemsetNodeSetParams: a node of another type");
}

TEST_F(GraphNodes, AreChangedInExecutablesOfTheirGraph) {
  cudaGraph_t other = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaGraphExec_t executable = nullptr;
  ok(cudaGraphCreate(&other, 0));
  ok(cudaGraphAddMemsetNode(&node, other, nullptr, 0, &parameters()));
  ok(cudaGraphInstantiate(&executable, graph_, 0));
  EXPECT_EQ(cudaGraphExecMemsetNodeSetParams(executable, node, &parameters()), cudaErrorInvalidValue);
  expect_fault("cudaGraphExecMemsetNodeSetParams: a node of another graph");
}

TEST_F(GraphNodes, MayHaveNoRows) {
  parameters_.height = 0;
  cudaGraphNode_t node = nullptr;
  ok(cudaGraphAddMemsetNode(&node, graph_, nullptr, 0, &parameters()));
  cudaMemcpy3DParms copy{};
  copy.srcPtr = copy.dstPtr = {.ptr = data_, .pitch = 16, .xsize = 16, .ysize = 0};
  copy.extent = {.width = 16, .height = 0, .depth = 1};
  copy.kind = cudaMemcpyDefault;
  ok(cudaGraphAddMemcpyNode(&node, graph_, nullptr, 0, &copy));
  cudaGraphExec_t executable = nullptr;
  ok(cudaGraphInstantiate(&executable, graph_, 0));
  const cudaStream_t stream = make_stream();
  ok(cudaGraphLaunch(executable, stream));
  finish(stream);
  EXPECT_EQ(data_[0], 1u);
}

}  // namespace
}  // namespace gradring::tests
