// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "comm/rendezvous/store.h"
#include "comm/transport/transport.h"
#include "kernels/ops/kernel_set.h"
#include "kernels/runtime/device.h"

namespace gradring::comm {

/// One rank's options of an NCCL group.
struct NcclOptions {
  int rank = 0;
  int world_size = 1;
  Store& store;                       ///< for the rendezvous, and for reporting failures
  kernels::Device& device;            ///< whose memory is sent and summed
  const kernels::KernelSet& kernels;  ///< of that device; `accumulate` adds received data
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);
  std::string name = "group";  ///< prefix of this group's keys in the store
  /// Rank 0's text, on every rank: the control channel's broadcast, which carries the ncclUniqueId.
  std::function<std::string(const std::string& text)> broadcast;
  std::string gpu;  ///< PCI bus id
  /// Whether several ranks may share a GPU, for tests. Before NCCL 2.30 they then use loopback sockets.
  bool allow_shared_gpu = false;
  /// Whether the GPUs are simulated, and so is NCCL (nccl_api.h).
  bool simulated_gpus = false;
  /// Makes the device current in this thread; NCCL uses the current device.
  std::function<void()> make_current = [] {};
  /// Whether the stream is being captured into a graph: its events are never reached and must not be waited for.
  std::function<bool(kernels::Stream&)> is_captured = [](kernels::Stream&) { return false; };
};

/// The transport of ranks that have a GPU each: NCCL sends and receives, our own kernel adds. Loads libnccl.so.2 at run
/// time, unless the GPUs are simulated. Blocks until all ranks are connected. The store, the device and the kernels must
/// outlive the transport; captured graphs of its collectives must not.
///
/// Errors    DeviceError if NCCL is missing, is too old or fails, or if ranks share a GPU without permission. Timeout
///           that names the missing ranks; Desync if ranks have different world sizes; what `broadcast` throws.
std::unique_ptr<Transport> make_nccl_transport(const NcclOptions& options);

}  // namespace gradring::comm
