// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/tcp/tcp.h"

#include "comm/transport/tcp/tcp_transport.h"

namespace gradring::comm {

std::unique_ptr<Transport> make_tcp_transport(Store& store, const TcpSpec& spec, Deadline deadline) {
  return std::make_unique<TcpTransport>(tcp::connect_mesh(store, spec, deadline), spec.rank);
}

}  // namespace gradring::comm
