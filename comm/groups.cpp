// SPDX-License-Identifier: Apache-2.0
#include "comm/groups.h"

#include "comm/transports/in_process/in_process.h"
#include "comm/transports/shared_memory/shared_memory.h"
#include "comm/transports/tcp/tcp_transport.h"

namespace gradring::comm {

InProcessHub::InProcessHub(int world_size, ProcessGroup::Duration timeout)
    : data_(std::make_shared<InProcessRendezvous>(world_size)),
      control_(std::make_shared<InProcessRendezvous>(world_size)),
      timeout_(timeout) {}

InProcessHub::~InProcessHub() = default;

int InProcessHub::world_size() const { return data_->world_size(); }

std::unique_ptr<ProcessGroup> InProcessHub::join(int rank) {
  return std::make_unique<ProcessGroup>(make_in_process_transport(data_, rank),
                                        make_in_process_transport(control_, rank), timeout_);
}

std::unique_ptr<ProcessGroup> make_shared_memory_group(Store& store, const SharedMemoryGroupOptions& options) {
  const auto transport = [&](const std::string& channel) {
    return make_shared_memory_transport(
        store, {.rank = options.rank, .world_size = options.world_size, .name = options.name + "/" + channel},
        Deadline::after(options.timeout));
  };
  auto data = transport("data");
  return std::make_unique<ProcessGroup>(std::move(data), transport("control"), options.timeout);
}

std::unique_ptr<Transport> make_tcp_transport(Store& store, const TcpGroupOptions& options,
                                              const std::string& channel) {
  TcpSpec spec;
  spec.rank = options.rank;
  spec.world_size = options.world_size;
  spec.name = options.name + "/" + channel;
  spec.address = options.address;
  spec.port = options.port;
  spec.token = options.token;
  return std::make_unique<TcpTransport>(tcp::connect_mesh(store, spec, Deadline::after(options.timeout)), spec.rank);
}

std::unique_ptr<ProcessGroup> make_tcp_group(Store& store, const TcpGroupOptions& options) {
  auto data = make_tcp_transport(store, options, "data");
  return std::make_unique<ProcessGroup>(std::move(data), make_tcp_transport(store, options, "control"),
                                        options.timeout);
}

}  // namespace gradring::comm
