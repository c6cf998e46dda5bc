// SPDX-License-Identifier: Apache-2.0
#include "comm/in_process_hub.h"

#include "comm/transport/in_process/in_process.h"

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

}  // namespace gradring::comm
