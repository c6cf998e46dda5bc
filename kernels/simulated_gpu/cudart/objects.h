// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/simulated_gpu/cudart/counting.h"
#include "kernels/simulated_gpu/cudart/error_text.h"
#include "kernels/simulated_gpu/cudart/scheduler.h"

namespace gradring::simulated_gpu {

class Capture;

/// Nodes, by index, of a graph that is being captured.
using Frontier = std::vector<std::size_t>;

struct Stream {
  /// How it is ordered with the legacy default stream of its device.
  enum class Kind : std::uint8_t { non_blocking, blocking, legacy };
  int device = 0;
  std::uint64_t lane = 0;
  Kind kind = Kind::non_blocking;
  int priority = 0;
  Scheduler::WorkPtr tail;           ///< its newest work
  std::shared_ptr<Capture> capture;  ///< null while it is not captured
  Frontier frontier;                 ///< of the capture: what its next work is behind
  // Of a blocking stream:
  Scheduler::WorkPtr seen_by_legacy;  ///< its newest work that the legacy stream is behind
  Scheduler::WorkPtr seen_of_legacy;  ///< the newest work of the legacy stream that it is behind
};

struct Event {
  int device = 0;
  bool has_timing = false;
  bool is_recorded = false;
  Scheduler::WorkPtr work;
  std::shared_ptr<Capture> capture;  ///< recorded in a stream that was captured then
  Frontier frontier;
};

/// What a graph consists of: work, and for each piece the others that it is behind.
struct Recipe {
  struct Node {
    StreamWork work;         ///< guarded; performed at every launch
    std::size_t branch = 0;  ///< the captured stream that it comes from
    Frontier after;
    std::shared_ptr<const Recipe> child{};  ///< in place of `work`: a graph within the graph
  };
  int device = 0;
  std::size_t branches = 0;
  std::vector<Node> nodes;
};

/// A graph that a program can change: the recipe of a capture, or nodes that were added one by one.
struct Graph {
  Recipe recipe;
  bool is_by_hand = false;               ///< edges may lead to earlier nodes, and branches are not known
  std::vector<cudaGraphNode_t> handles;  ///< of the nodes, once they were asked for
};

/// A recipe that can be launched: each node is behind earlier ones only, and there are no graphs within it.
struct ArrangedRecipe {
  std::shared_ptr<const Recipe> recipe;
  std::vector<std::size_t> positions;  ///< of the graph's nodes, by their index; of a graph within it: its last node
};

/// Errors    Misuse if nodes wait for each other in a circle.
ArrangedRecipe arrange(const Graph& graph);

/// A node of a graph, by its index in the recipe.
struct GraphNode {
  cudaGraph_t graph = nullptr;
  std::size_t index = 0;
};

/// One capture, shared by the streams that joined it and the events that were recorded in it.
///
/// Threads   the runtime's lock guards it.
class Capture {
 public:
  /// Begins with `origin`.
  Capture(Stream& origin, cudaStreamCaptureMode mode);

  int device() const { return recipe_.device; }
  bool is_origin(const Stream& stream) const { return origin_ == &stream; }
  bool is_valid() const { return broken_.empty(); }
  bool has_ended() const { return ended_; }
  /// Whether calls of all threads may break it.
  bool is_global() const { return mode_ == cudaStreamCaptureModeGlobal; }
  /// Whether an unsafe call of this thread breaks it.
  bool forbids_this_thread() const {
    if (is_global()) return true;
    return mode_ == cudaStreamCaptureModeThreadLocal && thread_ == std::this_thread::get_id();
  }
  /// Whether only this thread may end it, and which that is.
  bool may_end_here() const { return mode_ == cudaStreamCaptureModeRelaxed || thread_ == std::this_thread::get_id(); }

  /// Nothing is captured any more; `why` is for later errors.
  void invalidate(const std::string& why) {
    if (is_valid()) broken_ = why;
  }
  /// Errors    Misuse if it was invalidated.
  void require_valid() const {
    if (!is_valid()) throw Misuse{cudaErrorStreamCaptureInvalidated, "a capture that was invalidated by " + broken_};
  }

  /// The same for a new stream, or one that is in it: its next work is behind `event`, too.
  void join(Stream& stream, const Event& event);
  /// A stream that is destroyed.
  void leave(Stream& stream) {
    invalidate("the destruction of a stream that was captured");
    branches_.erase(&stream);
    if (origin_ == &stream) origin_ = nullptr;
  }
  void add(Stream& stream, StreamWork work);

  /// Releases its streams.
  ///
  /// Errors    Misuse if it was invalidated, or work of a stream is not joined with that of the first.
  Recipe end();

 private:
  std::size_t unjoined() const;

  Stream* origin_;
  std::thread::id thread_ = std::this_thread::get_id();
  cudaStreamCaptureMode mode_;
  std::map<Stream*, std::size_t> branches_;  // streams that joined
  std::string broken_;                       // why it was invalidated; empty: it was not
  bool ended_ = false;
  Recipe recipe_;
};

/// Bytes that blocks of a pool have: shared with work that frees them.
struct PoolUse {
  std::atomic<std::uint64_t> used{0};
  std::atomic<std::uint64_t> reserved{0};
  std::atomic<std::uint64_t> keep{0};  ///< cudaMemPoolAttrReleaseThreshold
};

struct Pool {
  int device = 0;
  std::shared_ptr<PoolUse> use = std::make_shared<PoolUse>();
};

/// A graph that can be launched.
struct GraphExecutable {
  cudaGraph_t graph = nullptr;  ///< of which it was made
  std::shared_ptr<const Recipe> recipe;
  std::vector<std::size_t> positions;  ///< of the graph's nodes in it
  std::uint64_t first_lane = 0;        ///< a lane for each of its branches
  Scheduler::WorkPtr last;             ///< the end of its newest launch
};

/// The objects behind CUDA's handles of one kind. A handle is a number that is given once, so a destroyed one is known.
template <class Object, class Handle>
class Handles {
 public:
  /// `name` with an article, for messages: "a stream".
  explicit Handles(const char* name) : name_(name) {}

  Handle add(Object object) {
    objects_.emplace(++last_, std::move(object));
    return reinterpret_cast<Handle>(last_ * kStep);
  }
  /// Errors    Misuse if the handle is unknown.
  Object& at(Handle handle) {
    const auto found = objects_.find(number_of(handle));
    if (found == objects_.end()) throw_missing(handle);
    return found->second;
  }
  void remove(Handle handle) { objects_.erase(number_of(handle)); }

  const std::map<std::uint64_t, Object>& all() const { return objects_; }
  std::map<std::uint64_t, Object>& all() { return objects_; }

 private:
  static constexpr std::uint64_t kStep = 4096;  // no address, and none of the small numbers that CUDA gives a meaning

  static std::uint64_t number_of(Handle handle) {
    const auto value = reinterpret_cast<std::uintptr_t>(handle);
    return value % kStep == 0 ? value / kStep : 0;
  }
  [[noreturn]] void throw_missing(Handle handle) const {
    const std::uint64_t number = number_of(handle);
    throw Misuse{cudaErrorInvalidResourceHandle, number > 0 && number <= last_
                                                     ? std::string(name_) + " that was destroyed"
                                                     : "a handle that is not " + std::string(name_)};
  }

  const char* name_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Object> objects_;
};

}  // namespace gradring::simulated_gpu
