// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/runtime/host/host_event.h"
#include "kernels/runtime/host/host_stream.h"

namespace gradring::kernels {

/// Runs work in the caller, before enqueue returns; so an error is thrown where it happens, and there is nothing to
/// synchronize. enqueue_wait blocks the caller.
class InPlaceStream final : public HostStream {
 public:
  using HostStream::HostStream;
  void enqueue(std::function<void()> work) override { work(); }
  void enqueue_launch(std::function<void(simt::Executor&)> launch) override { launch(executor_); }
  void record(Event& event) override {
    auto& mark = static_cast<HostEvent&>(event);
    mark.mark_reached(mark.mark_recorded());
  }
  void synchronize(Deadline) override {}
};

}  // namespace gradring::kernels
