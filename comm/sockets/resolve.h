// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "comm/sockets/socket_address.h"
#include "kernels/base/error.h"

namespace gradring::comm::tcp {

/// A host name without an address, for now: name servers learn of pods and nodes late.
struct UnresolvedName : DeviceError {
  using DeviceError::DeviceError;
};

/// All addresses of a host, given by name or numeric.
///
/// Errors    UnresolvedName, with the reason.
std::vector<SocketAddress> addresses_of(const std::string& host, int port);

/// "host:1", "[::1]:1"
std::string endpoint_text(const std::string& host, int port);

}  // namespace gradring::comm::tcp
