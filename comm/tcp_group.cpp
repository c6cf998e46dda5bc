// SPDX-License-Identifier: Apache-2.0
#include "comm/tcp_group.h"

#include "comm/transport/tcp/tcp_transport.h"

namespace gradring::comm {

std::unique_ptr<ProcessGroup> make_tcp_group(Store& store, const TcpGroupOptions& options) {
  const auto transport = [&](const std::string& channel) {
    TcpSpec spec;
    spec.rank = options.rank;
    spec.world_size = options.world_size;
    spec.name = options.name + "/" + channel;
    spec.address = options.address;
    spec.port = options.port;
    spec.token = options.token;
    return std::make_unique<TcpTransport>(tcp::connect_mesh(store, spec, Deadline::after(options.timeout)), spec.rank);
  };
  auto data = transport("data");
  return std::make_unique<ProcessGroup>(std::move(data), transport("control"), options.timeout);
}

}  // namespace gradring::comm
