// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>

#include "comm/transport/nccl/nccl_api.h"
#include "kernels/runtime/deadline.h"

namespace gradring::comm::nccl {

/// One rank's non-blocking ncclComm_t: no call waits for a peer inside NCCL, and it can be aborted at any time. One
/// lock serializes all NCCL calls, because none may run during an abort.
///
/// Threads   safe.
/// Errors    returns NCCL's result and does not throw; ncclInProgress means that the deadline passed. After an abort
///           every call returns ncclSuccess and does nothing.
class Communicator {
 public:
  explicit Communicator(const Api& api) : api_(api) {}
  /// Aborts the communicator unless finish freed it.
  ~Communicator() { abort(); }

  /// Connects all ranks. The rank's device must be current in this thread.
  ncclResult_t connect(const ncclUniqueId& id, int rank, int world_size, Deadline deadline);

  /// Runs `calls` as one NCCL group, and returns when it is enqueued on its stream. Only the first group with a peer
  /// waits for that peer, because NCCL then connects to it.
  ncclResult_t group(const std::function<ncclResult_t(ncclComm_t)>& calls, Deadline deadline);

  /// The asynchronous error; ncclInProgress while a call is being completed.
  ncclResult_t async_error();

  ncclResult_t register_memory(void* data, std::size_t bytes, void** handle);
  void deregister_memory(void* handle);

  /// Finalizes and frees the communicator. Requires that all collectives have completed on their streams.
  ncclResult_t finish(Deadline deadline);
  /// Aborts all operations and frees the communicator. May hang inside NCCL.
  void abort();

  const Api& api() const { return api_; }

 private:
  ncclResult_t complete(Deadline deadline);

  Api api_;
  std::mutex mutex_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace gradring::comm::nccl
