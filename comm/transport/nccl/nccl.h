// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "comm/rendezvous/store.h"
#include "comm/transport/transport.h"
#include "kernels/kernel_set.h"
#include "kernels/runtime/device.h"

namespace gradring::comm {

/// What one rank brings to an NCCL group.
struct NcclOptions {
  int rank = 0;
  int world_size = 1;
  Store& store;                       ///< how the ranks find each other, and tell each other why they fail
  kernels::Device& device;            ///< whose memory is sent and summed
  const kernels::KernelSet& kernels;  ///< of that device; its `accumulate` adds what is received
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);
  std::string name = "group";  ///< keeps the keys of several groups in one store apart
  /// What tells the GPU from all others of its host: its PCI bus id.
  std::string gpu;
  /// Whether several ranks may share a GPU: for tests. Before NCCL 2.30 they then talk over loopback sockets.
  bool allow_shared_gpu = false;
  /// Makes the device the one that CUDA calls of this thread are for; NCCL asks CUDA which that is.
  std::function<void()> make_current = [] {};
  /// Whether the stream is captured into a graph: events in it are never reached, so nobody may wait for them.
  std::function<bool(kernels::Stream&)> is_captured = [](kernels::Stream&) { return false; };
};

/// The transport of ranks that have a GPU each: NCCL moves the bytes, our own kernel adds them. Loads libnccl.so.2, which
/// nothing links. Blocks until all ranks are connected. The store, the device and the kernels must outlive the transport;
/// graphs that hold its collectives must not.
///
/// Errors    DeviceError if NCCL is not there, is too old or fails, or if ranks share a GPU and must not: says what to do.
///           Timeout that names who did not come; Desync if ranks were given different worlds.
std::unique_ptr<Transport> make_nccl_transport(const NcclOptions& options);

}  // namespace gradring::comm
