// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kernels/host/host_device.h"
#include "kernels/ops/kernel_set.h"

namespace gradring::tests {

/// The CPU, which calls itself a GPU: programs take the ways that they take on one. Streams are always asynchronous.
class StandInGpu final : public kernels::Device {
 public:
  explicit StandInGpu(int index) : index_(index), host_({.workers = 1}) {}

  kernels::DeviceId id() const override { return {kernels::DeviceKind::cuda, index_}; }
  std::string description() const override { return "stand-in for a GPU: " + host_.description(); }
  kernels::Buffer allocate(std::size_t bytes, kernels::MemoryKind kind) override { return host_.allocate(bytes, kind); }
  std::unique_ptr<kernels::Stream> make_stream(kernels::StreamMode) override {
    return host_.make_stream(kernels::StreamMode::asynchronous);
  }
  std::unique_ptr<kernels::Event> make_event() override { return host_.make_event(); }
  std::unique_ptr<kernels::Timer> make_timer() override { return host_.make_timer(); }
  /// A graph is the function, called again.
  std::unique_ptr<kernels::Recording> record(kernels::Stream& stream, std::function<void()> enqueue_work) override;

  /// Whether a graph is being enqueued: the calls in it count as captured.
  bool enqueues_graph() const { return enqueues_graph_; }

 private:
  int index_;
  kernels::HostDevice host_;
  bool enqueues_graph_ = false;
};

/// The CPU's kernels for a StandInGpu: every variant runs there that runs on the CPU.
kernels::KernelSet stand_in_kernels();

}  // namespace gradring::tests
