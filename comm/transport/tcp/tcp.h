// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/transport/tcp/mesh.h"
#include "comm/transport/transport.h"

namespace gradring::comm {

/// The transport of one rank that is a process on this host or another. The ranks learn each other's addresses from the
/// store, which is used only during this call, and which strangers must not be able to read: it holds the token by
/// which the ranks know each other. Blocks until this rank is connected to all others.
///
/// Errors    as tcp::connect_mesh.
std::unique_ptr<Transport> make_tcp_transport(Store& store, const TcpSpec& spec, Deadline deadline);

}  // namespace gradring::comm
