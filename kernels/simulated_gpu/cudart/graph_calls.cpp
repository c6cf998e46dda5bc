// SPDX-License-Identifier: Apache-2.0
// Captures and graphs.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/simulated_gpu/cudart/runtime.h"

namespace gradring::simulated_gpu {

Capture::Capture(Stream& origin, cudaStreamCaptureMode mode) : origin_(&origin), mode_(mode) {
  recipe_.device = origin.device;
  recipe_.branches = 1;
  branches_[&origin] = 0;
}

void Capture::join(Stream& stream, const Event& event) {
  require_valid();
  if (branches_.emplace(&stream, recipe_.branches).second) ++recipe_.branches;
  stream.capture = event.capture;
  for (const std::size_t node : event.frontier)
    if (std::ranges::find(stream.frontier, node) == stream.frontier.end()) stream.frontier.push_back(node);
}

void Capture::add(Stream& stream, StreamWork work) {
  require_valid();
  recipe_.nodes.push_back({.work = std::move(work),
                           .branch = branches_.at(&stream),
                           .after = std::exchange(stream.frontier, {recipe_.nodes.size()})});
}

std::size_t Capture::unjoined() const {
  std::vector<bool> joined(recipe_.nodes.size(), false);
  Frontier pending = origin_->frontier;
  while (!pending.empty()) {
    const std::size_t node = pending.back();
    pending.pop_back();
    if (joined[node]) continue;
    joined[node] = true;
    const Frontier& after = recipe_.nodes[node].after;
    pending.insert(pending.end(), after.begin(), after.end());
  }
  return static_cast<std::size_t>(std::ranges::count(joined, false));
}

Recipe Capture::end() {
  ended_ = true;
  const std::size_t left = is_valid() ? unjoined() : 0;
  for (const auto& [stream, branch] : branches_) {
    stream->capture = nullptr;
    stream->frontier.clear();
  }
  require_valid();
  if (left > 0)
    throw Misuse{cudaErrorStreamCaptureUnjoined,
                 joined(left,
                        " pieces of captured work that the first stream does not wait for: record an event "
                        "behind them, and let the first stream wait for it")};
  return std::move(recipe_);
}

}  // namespace gradring::simulated_gpu

using namespace gradring::simulated_gpu;

namespace {

/// A graph's work on a stream, behind what is enqueued there and behind the graph's launch before.
Scheduler::WorkPtr enqueue_graph(Runtime& rt, const GraphExecutable& graph, Stream& stream) {
  rt.order_with_default(stream);
  const std::vector<Scheduler::WorkPtr> before = {stream.tail, graph.last};
  std::vector<Scheduler::WorkPtr> made;
  const std::size_t launch = rt.counting.next_graph_launch();
  const std::size_t first_counted = rt.counting.size();
  for (const Recipe::Node& node : graph.recipe->nodes) {
    std::vector<Scheduler::WorkPtr> after = before;
    for (const std::size_t other : node.after) after.push_back(made[other]);
    Frontier counted_after = node.after;
    for (std::size_t& other : counted_after) other += first_counted;
    if (node.work.enqueued) node.work.enqueued();
    made.push_back(rt.scheduler.enqueue(
        {.run = rt.counting.counted(node.work, stream.device, launch, std::move(counted_after)),
         .on_host = node.work.on_host,
         .lane = graph.first_lane + node.branch,
         .overlaps = node.work.begins_early && node.after.size() == 1 ? made[node.after.front()] : nullptr},
        after));
  }
  made.insert(made.end(), before.begin(), before.end());
  return rt.scheduler.enqueue({.run = {}, .lane = stream.lane}, made);
}

/// A capture in the global mode fails if another thread happens to call what it forbids. It is made to last so long
/// that a thread that does so now and then, such as a watchdog, has done it.
void await_other_threads(Call& call, const Capture& capture) {
  constexpr std::chrono::milliseconds kDuration(200);
  const auto until = std::chrono::steady_clock::now() + kDuration;
  while (capture.is_valid() && std::chrono::steady_clock::now() < until) {
    call.lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    call.lock.lock();
  }
}

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", [&](Call& call) {
    Stream& stream = call.stream(handle);
    call.on(stream.device);
    if (stream.kind == Stream::Kind::legacy)
      throw Misuse{cudaErrorStreamCaptureUnsupported, "the legacy default stream, which cannot be captured"};
    if (stream.capture) throw Misuse{cudaErrorIllegalState, "a stream that is captured already"};
    stream.capture = std::make_shared<Capture>(stream, mode);
    call.rt.captures.push_back(stream.capture);
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return call("cudaStreamIsCapturing", [&](Call& call) {
    const Stream& stream = call.stream(handle);
    call.on(stream.device);
    if (stream.kind == Stream::Kind::legacy && call.rt.default_streams.waits_for_capture(stream, call.rt.streams))
      throw Refusal{cudaErrorStreamCaptureImplicit};  // the capture stays valid
    *status = !stream.capture              ? cudaStreamCaptureStatusNone
              : stream.capture->is_valid() ? cudaStreamCaptureStatusActive
                                           : cudaStreamCaptureStatusInvalidated;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  return call("cudaStreamEndCapture", [&](Call& call) {
    *graph = nullptr;
    const Stream& stream = call.stream(handle);
    const std::shared_ptr<Capture> capture = stream.capture;
    call.release(stream.device);
    if (!capture) throw Misuse{cudaErrorIllegalState, "a stream that is not captured"};
    if (!capture->is_origin(stream))
      throw Misuse{cudaErrorStreamCaptureUnmatched, "a stream that joined the capture, which another one began"};
    if (!capture->may_end_here())
      throw Misuse{cudaErrorStreamCaptureWrongThread, "a capture that another thread began"};
    if (capture->is_global() && call.rt.options.is_strict) await_other_threads(call, *capture);
    std::erase(call.rt.captures, capture);
    *graph = call.rt.graphs.add({.recipe = capture->end()});
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call("cudaGraphDestroy", [&](Call& call) {
    const Graph& destroyed = call.rt.graphs.at(graph);
    call.release(destroyed.recipe.device);
    for (const cudaGraphNode_t node : destroyed.handles) call.rt.graph_nodes.remove(node);
    call.rt.graphs.remove(graph);
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t handle, unsigned long long flags) {
  return call("cudaGraphInstantiate", [&](Call& call) {
    const Graph& graph = call.rt.graphs.at(handle);
    call.on(graph.recipe.device);
    constexpr unsigned long long kHints = cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUpload |
                                          cudaGraphInstantiateFlagUseNodePriority;
    if ((flags & ~kHints) != 0) throw Misuse{cudaErrorNotSupported, "flags, which are not simulated"};
    ArrangedRecipe arranged = arrange(graph);
    const std::uint64_t first_lane = call.rt.scheduler.new_lanes(arranged.recipe->branches);
    *executable = call.rt.executables.add({.graph = handle,
                                           .recipe = std::move(arranged.recipe),
                                           .positions = std::move(arranged.positions),
                                           .first_lane = first_lane});
  });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}

/// Its nodes take the work of the graph's, which must have the same dependencies.
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t handle, cudaGraphExecUpdateResultInfo* info) {
  return call("cudaGraphExecUpdate", [&](Call& call) {
    GraphExecutable& changed = call.rt.executables.at(executable);
    const Graph& graph = call.rt.graphs.at(handle);
    call.on(graph.recipe.device);
    ArrangedRecipe arranged = arrange(graph);
    const auto is_same = [](const Recipe::Node& a, const Recipe::Node& b) {
      return a.after == b.after && a.work.kind == b.work.kind && a.branch == b.branch;
    };
    const bool fits = std::ranges::equal(changed.recipe->nodes, arranged.recipe->nodes, is_same);
    if (info) *info = {.result = fits ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged};
    if (!fits) throw Refusal{cudaErrorGraphExecUpdateFailure};
    changed.graph = handle;
    changed.recipe = std::move(arranged.recipe);
    changed.positions = std::move(arranged.positions);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t) {
  return call("cudaGraphUpload", [&](Call& call) { call.on(call.rt.executables.at(executable).recipe->device); });
}

/// A launch of it goes on.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return call("cudaGraphExecDestroy", [&](Call& call) {
    call.release(call.rt.executables.at(executable).recipe->device);
    call.rt.executables.remove(executable);
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  return call("cudaGraphLaunch", [&](Call& call) {
    GraphExecutable& graph = call.rt.executables.at(executable);
    Stream& stream = call.stream(handle);
    call.on(graph.recipe->device);
    if (stream.device != graph.recipe->device)
      throw Misuse{cudaErrorInvalidValue,
                   joined("a graph of cuda:", graph.recipe->device, " on a stream of cuda:", stream.device)};
    if (stream.capture) throw Misuse{cudaErrorNotSupported, "a graph within a graph, which is not simulated"};
    stream.tail = graph.last = enqueue_graph(call.rt, graph, stream);
  });
}
}
