// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "kernels/simulated_gpu/cards/card.h"
#include "kernels/simulated_gpu/cudart/counting.h"
#include "kernels/simulated_gpu/cudart/host_stack.h"
#include "kernels/simulated_gpu/machine/findings.h"
#include "kernels/simulated_gpu/units/fault.h"

namespace gradring::simulated_gpu {

/// An access of a copy to memory that is not there.
class IllegalAccess : public Fault {
 public:
  using Fault::Fault;
};

/// One simulated GPU of the process. It fails as a whole, as CUDA's do: after a fault in its work, nothing that it does
/// has an effect, and calls return the error.
///
/// Threads   any may read and fail it.
class Device {
 public:
  /// `number`: among the GPUs of the machine, of which a process may see some only.
  Device(const Card& card, int index, int number, FindingLog& faults)
      : card_(card), index_(index), number_(number), faults_(faults) {}

  const Card& card() const { return card_; }
  int index() const { return index_; }
  int number() const { return number_; }
  /// "cuda:0"
  std::string name() const { return joined("cuda:", index_); }

  /// Whether a call opened its context. The runtime's lock guards it.
  bool has_context = false;

  /// cudaSuccess until the device fails.
  cudaError_t failure() const { return failure_.load(std::memory_order_acquire); }

  /// Notes from now on which calls of the host enqueue work.
  void note_host_stacks() { notes_host_stacks_ = true; }
  /// Those of the work that runs now; null: not known.
  const HostStack* origin() const { return origin_.load(std::memory_order_acquire); }

  /// `work` as the scheduler calls it: without effect after a failure; a fault is the device's failure.
  StreamWork guarded(StreamWork work);
  /// The fault that comes next is that of an assertion: the device fails with cudaErrorAssert.
  void note_failed_assertion() { has_failed_assertion_ = true; }
  /// Reports what it fails with.
  void fail(cudaError_t error, Finding finding);
  void fail(cudaError_t error, const std::string& what, FindingKind kind = FindingKind::fault) {
    fail(error, Finding{.kind = kind, .severity = severity_of(kind), .text = what});
  }

 private:
  const Card& card_;
  int index_;
  int number_;
  FindingLog& faults_;
  bool notes_host_stacks_ = false;
  std::atomic<const HostStack*> origin_{nullptr};
  std::atomic<bool> has_failed_assertion_{false};
  std::atomic<cudaError_t> failure_{cudaSuccess};
};

/// What follows from the card, and what the simulation can do. Of textures there is nothing but alignments.
cudaDeviceProp properties_of(const Device& device);
/// 0 for what is documented and not simulated; nothing for a number that is not documented.
std::optional<int> attribute_of(const Device& device, cudaDeviceAttr attribute);

/// What cudaGetErrorString returns: CUDA's text, and behind it the first fault that a device failed with. Valid until
/// the process ends.
///
/// Threads   any.
const char* described(cudaError_t error);
/// Ends the life of these texts; for tests.
void forget_failures();

}  // namespace gradring::simulated_gpu
