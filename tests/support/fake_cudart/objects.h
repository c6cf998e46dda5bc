// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/fake_cudart/fake_cudart.h"

namespace gradring::tests {

using Work = std::vector<std::function<void()>>;

struct FakeStream;

/// One capture, shared by the streams that joined it.
struct FakeCapture {
  FakeStream* origin = nullptr;
  std::thread::id thread{};  // that began it
  std::set<FakeStream*> streams{};
  std::set<FakeStream*> unjoined{};  // with work that no other stream waits for
  Work work{};
  bool invalid = false;
  bool ended = false;
};

/// CUDA's headers only declare what its handles point to; a handle points to one of these.
struct FakeStream {
  int device = 0;
  double free_at = 0;                     // when its work is done
  std::shared_ptr<FakeCapture> captured;  // null while it is not captured
};
struct FakeEvent {
  int device = 0;
  double at = 0;
  bool recorded = false;
  std::shared_ptr<FakeCapture> captured;  // recorded in a stream that was captured then
  FakeStream* stream = nullptr;           // that stream
};
struct FakeGraph {
  int device = 0;
  Work work;
};
struct FakePool {
  int device = 0;
};

inline FakeStream& of(cudaStream_t stream) { return *reinterpret_cast<FakeStream*>(stream); }
inline FakeEvent& of(cudaEvent_t event) { return *reinterpret_cast<FakeEvent*>(event); }
inline FakeGraph& of(cudaGraph_t graph) { return *reinterpret_cast<FakeGraph*>(graph); }
inline FakeGraph& of(cudaGraphExec_t graph) { return *reinterpret_cast<FakeGraph*>(graph); }
inline FakePool& of(cudaMemPool_t pool) { return *reinterpret_cast<FakePool*>(pool); }

/// Each thread's own.
int& current_device();

/// The beginning of a call that needs a context; with the lock held.
void open_context(const char* call);
/// The same for a call on an object of `device`.
void open_context(const char* call, int device);

/// Notes what is enqueued: it runs now, or is kept if the stream is captured. With the lock held.
///
/// Returns   cudaErrorStreamCaptureInvalidated if the stream's capture is invalid.
cudaError_t enqueue(FakeStream& stream, std::function<void()> work);

/// The captures that have not ended. With the lock held.
std::vector<std::shared_ptr<FakeCapture>>& captures();
/// Called first by what CUDA forbids the thread that captures, in the modes "global" and "thread-local": it invalidates
/// the capture. With the lock held.
///
/// Returns   whether this thread captures: then the call returns cudaErrorStreamCaptureUnsupported.
bool breaks_capture();

template <class Object, class Handle>
cudaError_t make(Handle* handle, Object object) {
  auto* made = new Object(std::move(object));
  fake_cuda().alive.insert(made);
  *handle = reinterpret_cast<Handle>(made);
  return cudaSuccess;
}

template <class Handle>
cudaError_t destroy(Handle handle) {
  auto* object = &of(handle);
  if (fake_cuda().alive.erase(object) == 0) return cudaErrorInvalidResourceHandle;
  delete object;
  return cudaSuccess;
}

}  // namespace gradring::tests
