// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/nccl/nccl_memory.h"

#include <utility>

namespace gradring::comm::nccl {

NcclMemory::NcclMemory(std::shared_ptr<Communicator> communicator, std::size_t bytes) : bytes_(bytes) {
  void* data = nullptr;
  const bool allocated = communicator->api().mem_alloc(&data, bytes) == ncclSuccess;
  data_ = std::unique_ptr<void, FreeNcclMemory>(allocated ? data : nullptr,
                                                FreeNcclMemory{.communicator = std::move(communicator)});
}

bool NcclMemory::register_it() {
  FreeNcclMemory& owner = data_.get_deleter();
  return owner.communicator->register_memory(data_.get(), bytes_, &owner.registration) == ncclSuccess;
}

void FreeNcclMemory::operator()(void* data) const {
  communicator->deregister_memory(registration);
  communicator->api().mem_free(data);
}

}  // namespace gradring::comm::nccl
