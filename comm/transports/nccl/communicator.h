// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "comm/transports/nccl/dependencies.h"
#include "kernels/base/deadline.h"

namespace gradring::comm::nccl {

/// Calls `end` after `work`, also if that throws.
template <class Work, class End>
void run_and_end(const Work& work, const End& end) {
  try {
    work();
  } catch (...) {
    end();
    throw;
  }
  end();
}

/// One rank's non-blocking ncclComm_t: no call waits for a peer inside NCCL, and it can be stopped at any time. One
/// lock serializes all NCCL calls, because none may run during a revoke or an abort.
///
/// NCCL can hang where it ends a communicator: a revoke, an abort and a destroy wait for its threads, which may wait for
/// peers on this host, and an abort also waits for graphs. They run in a thread of their own, which is left behind after
/// Dependencies::abort_timeout. A stop or an abort then ends the process with `exit_message`. A finish does not, since
/// all operations are complete.
///
/// Threads   safe.
/// Errors    returns NCCL's result and does not throw; ncclInProgress means that the deadline passed. After a stop
///           every call returns ncclSuccess and does nothing; a group that was being enqueued ends with the stop.
class Communicator {
 public:
  /// `make_current` makes the rank's device current in the calling thread.
  Communicator(const Dependencies& dependencies, std::function<void()> make_current)
      : dependencies_(dependencies), make_current_(std::move(make_current)) {}
  /// Aborts the communicator unless finish freed it.
  ~Communicator();

  /// Connects all ranks. The rank's device must be current in this thread. NCCL's log calls the communicator `name`.
  ncclResult_t connect(const ncclUniqueId& id, int rank, int world_size, const std::string& name, Deadline deadline);

  /// Runs `calls` as one NCCL group, and returns when it is enqueued on its stream. Only the first group with a peer
  /// waits for that peer, because NCCL then connects to it.
  ncclResult_t group(const std::function<ncclResult_t(ncclComm_t)>& calls, Deadline deadline);

  /// Calls `launch`, which enqueues a graph of captured groups, unless the communicator is stopped: a revoke ends only
  /// what was enqueued before it.
  void launch(const std::function<void()>& launch);

  /// The asynchronous error; ncclInProgress while a call is being completed.
  ncclResult_t async_error();
  /// "remote process exited or there was a network error: ...", with NCCL's last message.
  std::string describe(ncclResult_t result);

  /// Ends all operations: waiting streams go on. Revokes the communicator where NCCL can (from 2.28.7 on), since that
  /// does not wait for graphs; else aborts it.
  void stop(const std::string& exit_message);
  /// Finalizes and frees the communicator, or aborts it if that fails. Requires that all collectives have completed on
  /// their streams, and that graphs of them are destroyed.
  void finish();
  /// Aborts all operations and frees the communicator. Requires that graphs of a stopped communicator are destroyed.
  void abort(const std::string& exit_message);

  const Api& api() const { return dependencies_.api; }

 private:
  /// Calls that end a communicator.
  using End = std::function<ncclResult_t(ncclComm_t)>;

  ncclResult_t complete(Deadline deadline);
  ncclComm_t take();
  bool revoke(Deadline deadline, const std::string& exit_message);
  void abort_by(Deadline deadline, const std::string& exit_message);
  std::optional<ncclResult_t> run_by(Deadline deadline, ncclComm_t comm, const End& end);

  Dependencies dependencies_;
  std::function<void()> make_current_;
  std::string name_;  // NCCL may keep a pointer to it
  std::mutex mutex_;
  std::condition_variable launched_;
  int launches_ = 0;  // in progress
  ncclComm_t comm_ = nullptr;
  enum class Stop { none, underway, done } stop_ = Stop::none;
};

}  // namespace gradring::comm::nccl
