// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kernels/host/host_device.h"
#include "kernels/simt/engine/executor.h"
#include "tests/support/fake_nccl/misuse_log.h"

namespace gradring::tests {

class FakeGpu;
class FakeStream;

/// Work that is captured into a graph. A graph runs it in the order in which it was enqueued, one of the orders
/// that its events allow.
struct Capture {
  using Item = std::function<void(kernels::Stream& stream)>;
  /// What comes before a point of a stream: the number of items of each stream.
  using Position = std::map<const FakeStream*, std::size_t>;
  std::thread::id thread;  ///< that began it
  std::vector<Item> items;
  std::map<const FakeStream*, Position> streams;     ///< that have joined it
  std::map<const kernels::Event*, Position> events;  ///< recorded in it: a stream that waits for one joins it

  /// Whether all items come before the end of `stream`.
  bool is_joined_to(const FakeStream& stream) const;
};

/// A stream of a FakeGpu. Work, a graph or a wait while it holds back an NCCL group is noted as misuse.
class FakeStream final : public kernels::Stream, public simt::LaunchQueue {
 public:
  FakeStream(FakeGpu& gpu, std::unique_ptr<kernels::Stream> inner) : gpu_(gpu), inner_(std::move(inner)) {}

  void enqueue(std::function<void()> work) override;
  void enqueue_copy(void* to, const void* from, std::size_t bytes) override;
  void enqueue_zero(void* to, std::size_t bytes) override;
  void record(kernels::Event& event) override;
  void enqueue_wait(const kernels::Event& event) override;
  void synchronize(Deadline deadline) override;
  void* native_handle() override { return static_cast<simt::LaunchQueue*>(this); }
  int device_index() const override;
  void enqueue_launch(std::function<void(simt::Executor&)> launch) override;
  unsigned workers() const override;

  FakeGpu& gpu() const { return gpu_; }
  /// What the stream's work is captured into, or null.
  std::shared_ptr<Capture> capture() const { return capture_.lock(); }
  /// For FakeNccl: operations that it has accepted, but not enqueued yet.
  void hold_operation() { ++held_operations_; }
  void release_operation() { --held_operations_; }
  /// Also for it: enqueues what `group` returns, with each launch of a graph again.
  void enqueue_group(std::function<std::function<void()>()> group);

 private:
  friend class FakeGpu;
  friend class FakeGraph;
  void check_no_group_is_held(const std::string& what);
  void put(Capture::Item item);
  void put_unchecked(Capture::Item item);

  FakeGpu& gpu_;
  std::unique_ptr<kernels::Stream> inner_;
  std::weak_ptr<Capture> capture_;
  std::atomic<int> held_operations_{0};
};

/// A CPU device with what NCCL depends on in a GPU: a current device per thread, streams that belong to a device, and
/// graphs that keep what was captured. A capture that CUDA refuses throws DeviceError.
///
/// Threads   as Device, but one thread captures at a time.
class FakeGpu final : public kernels::Device {
 public:
  FakeGpu(int index, MisuseLog& misuse) : index_(index), misuse_(misuse) {}

  /// Makes device `index` current in this thread. A new thread has device 0, as with CUDA.
  static void make_current(int index);
  static int current();

  kernels::DeviceId id() const override { return inner_.id(); }  // kernels run on the CPU
  std::string description() const override { return "fake GPU " + std::to_string(index_); }
  kernels::Buffer allocate(std::size_t bytes, kernels::MemoryKind kind) override {
    return inner_.allocate(bytes, kind);
  }
  std::unique_ptr<kernels::Stream> make_stream(kernels::StreamMode mode) override;
  std::unique_ptr<kernels::Event> make_event() override { return inner_.make_event(); }
  std::unique_ptr<kernels::Timer> make_timer() override { return inner_.make_timer(); }
  std::unique_ptr<kernels::Recording> record(kernels::Stream& stream, std::function<void()> enqueue_work) override;

  int index() const { return index_; }
  int graph_launches() const { return graph_launches_; }
  MisuseLog& misuse() { return misuse_; }

 private:
  friend class FakeGraph;
  friend class FakeStream;

  int index_;
  MisuseLog& misuse_;
  kernels::HostDevice inner_;
  std::shared_ptr<Capture> capture_;
  std::atomic<int> graph_launches_{0};
};

}  // namespace gradring::tests
