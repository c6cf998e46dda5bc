// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>

#include "comm/transport/nccl/nccl_api.h"
#include "kernels/runtime/deadline.h"

namespace gradring::comm::nccl {

/// One rank's ncclComm_t, non-blocking, so that no call waits for a peer inside NCCL and it can always be aborted. Every
/// call of NCCL goes through one lock: none may be under way while it is aborted.
///
/// Threads   safe.
/// Errors    none are thrown: NCCL's own result is returned; ncclInProgress means that the deadline passed. After an
///           abort every call returns ncclSuccess and does nothing.
class Communicator {
 public:
  explicit Communicator(const Api& api) : api_(api) {}
  /// Aborts what was not finished; see finish.
  ~Communicator() { abort(); }

  /// Connects all ranks. The device must be the current one of this thread.
  ncclResult_t connect(const ncclUniqueId& id, int rank, int world_size, Deadline deadline);

  /// Calls `calls` as one group, and returns when NCCL has put it on its stream. That waits for no peer, but for the first
  /// group with one, in which NCCL connects to it.
  ncclResult_t group(const std::function<ncclResult_t(ncclComm_t)>& calls, Deadline deadline);

  /// What went wrong behind our back; ncclInProgress while nothing did, and a call is still being worked on.
  ncclResult_t async_error();

  ncclResult_t register_memory(void* data, std::size_t bytes, void** handle);
  void deregister_memory(void* handle);

  /// Sends off what is still under way, and frees the communicator. Every collective must be done on its stream.
  ncclResult_t finish(Deadline deadline);
  /// Ends what is under way, and frees the communicator. May hang: NCCL does not promise otherwise.
  void abort();

  const Api& api() const { return api_; }

 private:
  ncclResult_t settle(Deadline deadline);

  Api api_;
  std::mutex mutex_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace gradring::comm::nccl
