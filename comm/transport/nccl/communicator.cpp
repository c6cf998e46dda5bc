// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/nccl/communicator.h"

#include <utility>

#include "kernels/runtime/deadline.h"

namespace gradring::comm::nccl {
namespace {

bool is_accepted(ncclResult_t result) { return result == ncclSuccess || result == ncclInProgress; }

}  // namespace

ncclResult_t Communicator::connect(const ncclUniqueId& id, int rank, int world_size, Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const ncclResult_t result = api_.comm_init_rank_config(&comm_, world_size, id, rank, &config);
    if (!is_accepted(result)) return result;
  }
  return complete(deadline);
}

ncclResult_t Communicator::group(const std::function<ncclResult_t(ncclComm_t)>& calls, Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (!comm_) return ncclSuccess;
    ncclResult_t result = api_.group_start();
    if (result != ncclSuccess) return result;
    result = calls(comm_);
    const ncclResult_t end = api_.group_end();  // also after an error, or the next group would be nested
    if (!is_accepted(result)) return result;
    if (!is_accepted(end)) return end;
  }
  return complete(deadline);
}

/// NCCL completes a call in its own thread; before that, no work may be enqueued after it on the stream.
ncclResult_t Communicator::complete(Deadline deadline) {
  ncclResult_t state = ncclInProgress;
  poll_until(
      [&] {
        state = async_error();
        return state != ncclInProgress;
      },
      deadline);
  return state;
}

ncclResult_t Communicator::async_error() {
  const std::lock_guard lock(mutex_);
  if (!comm_) return ncclSuccess;
  ncclResult_t state = ncclSuccess;
  const ncclResult_t result = api_.comm_get_async_error(comm_, &state);
  return result == ncclSuccess ? state : result;
}

ncclResult_t Communicator::register_memory(void* data, std::size_t bytes, void** handle) {
  const std::lock_guard lock(mutex_);
  return comm_ ? api_.comm_register(comm_, data, bytes, handle) : ncclSuccess;
}

void Communicator::deregister_memory(void* handle) {
  const std::lock_guard lock(mutex_);
  if (comm_ && handle) api_.comm_deregister(comm_, handle);
}

ncclResult_t Communicator::finish(Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (!comm_) return ncclSuccess;
    const ncclResult_t result = api_.comm_finalize(comm_);
    if (!is_accepted(result)) return result;
  }
  const ncclResult_t state = complete(deadline);
  if (state != ncclSuccess) return state;
  const std::lock_guard lock(mutex_);
  return comm_ ? api_.comm_destroy(std::exchange(comm_, nullptr)) : ncclSuccess;
}

void Communicator::abort() {
  const std::lock_guard lock(mutex_);
  if (comm_) api_.comm_abort(std::exchange(comm_, nullptr));
}

}  // namespace gradring::comm::nccl
