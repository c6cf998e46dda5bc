// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/process_group.h"
#include "comm/rendezvous/store.h"

namespace gradring::comm {

struct TcpGroupOptions {
  int rank = 0;
  int world_size = 1;
  ProcessGroup::Duration timeout = std::chrono::seconds(30);
  std::string name = "group";         ///< keeps the keys of several groups in one store apart
  std::string address = "127.0.0.1";  ///< numeric, IPv4 or IPv6: this rank listens there alone while it joins
  std::uint16_t port = 0;             ///< 0: any free one
};

/// The group of ranks that are processes connected by TCP. They find each other through `store`, which is used only
/// during this call and must be out of strangers' reach. Blocks until all ranks have come; afterwards no rank listens
/// anywhere. Gradients travel in the clear.
///
/// Errors    InvalidArgument if the rank is outside the world, or the address is not numeric or stands for all
///           addresses; DeviceError if the port is taken; Timeout that names the missing ranks; PeerLost; Desync if a
///           rank has another world size.
std::unique_ptr<ProcessGroup> make_tcp_group(Store& store, const TcpGroupOptions& options);

}  // namespace gradring::comm
