// SPDX-License-Identifier: Apache-2.0
#include "comm/shared_memory_group.h"

#include "comm/transport/shared_memory/shared_memory.h"

namespace gradring::comm {

std::unique_ptr<ProcessGroup> make_shared_memory_group(Store& store, const SharedMemoryGroupOptions& options) {
  const auto transport = [&](const std::string& channel) {
    return make_shared_memory_transport(
        store, {.rank = options.rank, .world_size = options.world_size, .name = options.name + "/" + channel},
        Deadline::after(options.timeout));
  };
  auto data = transport("data");
  return std::make_unique<ProcessGroup>(std::move(data), transport("control"), options.timeout);
}

}  // namespace gradring::comm
