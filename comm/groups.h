// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "comm/process_group.h"
#include "comm/rendezvous/store.h"
#include "comm/transports/shared_memory/shared_memory.h"
#include "comm/transports/tcp/mesh.h"
#include "kernels/runtime/device.h"

namespace gradring::comm {

class InProcessRendezvous;

/// Creates the process groups of ranks that are threads of one process.
///
/// Threads   join may be called from any thread, once per rank; groups may outlive the hub.
/// Example   tests/comm/support/ranks.h
class InProcessHub {
 public:
  /// Errors    InvalidArgument if world_size < 1.
  InProcessHub(int world_size, ProcessGroup::Duration timeout);
  ~InProcessHub();

  int world_size() const;
  /// The group of `rank`. Blocks until all ranks have joined.
  ///
  /// Errors    InvalidArgument if the rank is outside the world or has joined before; Timeout that names the missing
  ///           ranks.
  std::unique_ptr<ProcessGroup> join(int rank);

 private:
  std::shared_ptr<InProcessRendezvous> data_;
  std::shared_ptr<InProcessRendezvous> control_;
  ProcessGroup::Duration timeout_;
};

/// The process group of ranks that are processes on this host. They rendezvous through `store`, which is used only
/// during this call. Blocks until all ranks have joined. Leaves no file and no name behind, however the processes end.
///
/// Errors    InvalidArgument if the rank is outside the world; Timeout that names the missing ranks; PeerLost;
///           DeviceError if memory cannot be allocated.
std::unique_ptr<ProcessGroup> make_shared_memory_group(Store& store, const SharedMemoryGroupOptions& options);

/// The process group of ranks connected by TCP. They rendezvous through `store`, which is used only during this call;
/// without `options.token` the store must be private to the ranks. Blocks until all ranks have joined; afterwards no
/// rank listens. Traffic is not encrypted.
///
/// Errors    InvalidArgument if the rank is outside the world, or the address is not numeric or is a wildcard;
///           DeviceError if the port is taken, or the token is invalid; Timeout that names the missing ranks; PeerLost;
///           Desync if a rank has another world size.
std::unique_ptr<ProcessGroup> make_tcp_group(Store& store, const TcpGroupOptions& options);

/// One transport of such a group, as the control channel of ranks whose data goes another way. `channel` is its name,
/// unique in the group.
std::unique_ptr<Transport> make_tcp_transport(Store& store, const TcpGroupOptions& options, const std::string& channel);

/// The transport of a world of one, for memory of any device. Collectives of one rank have no steps: they are the
/// identity and cost nothing.
///
/// Errors    InvalidArgument for a step with moves.
std::unique_ptr<Transport> make_single_rank_transport(kernels::Device& device);

}  // namespace gradring::comm
