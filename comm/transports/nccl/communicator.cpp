// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/nccl/communicator.h"

#include <fmt/format.h>

#include <future>
#include <thread>
#include <utility>

namespace gradring::comm::nccl {
namespace {

bool is_accepted(ncclResult_t result) { return result == ncclSuccess || result == ncclInProgress; }

ncclResult_t state_of(ncclComm_t comm, const Api& api) {
  ncclResult_t error = ncclSuccess;
  const ncclResult_t result = api.comm_get_async_error(comm, &error);
  return result == ncclSuccess ? error : result;
}

/// The result of the call that returned `result`, when NCCL's own thread has completed it.
ncclResult_t completed(ncclResult_t result, ncclComm_t comm, const Api& api, Deadline deadline) {
  if (!is_accepted(result)) return result;
  poll_until([&] { return (result = state_of(comm, api)) != ncclInProgress; }, deadline);
  return result;
}

}  // namespace

Communicator::~Communicator() { abort("NCCL could not be aborted when the rank left its group"); }

ncclResult_t Communicator::connect(const ncclUniqueId& id, int rank, int world_size, const std::string& name,
                                   Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    name_ = name;
    config.commName = name_.c_str();
    const ncclResult_t result = api().comm_init_rank_config(&comm_, world_size, id, rank, &config);
    if (!is_accepted(result)) return result;
  }
  return complete(deadline);
}

ncclResult_t Communicator::group(const std::function<ncclResult_t(ncclComm_t)>& calls, Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (!comm_ || stop_ != Stop::none) return ncclSuccess;
    ncclResult_t result = api().group_start();
    if (result != ncclSuccess) return result;
    result = calls(comm_);
    const ncclResult_t end = api().group_end();  // also after an error, or the next group would be nested
    if (!is_accepted(result)) return result;
    if (!is_accepted(end)) return end;
  }
  return complete(deadline);
}

void Communicator::launch(const std::function<void()>& launch) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_ != Stop::none) return;
    ++launches_;
  }
  run_and_end(launch, [this] {
    const std::lock_guard lock(mutex_);
    --launches_;
    launched_.notify_all();
  });
}

/// NCCL completes a call in its own thread; before that, no work may be enqueued after it on the stream.
ncclResult_t Communicator::complete(Deadline deadline) {
  ncclResult_t result = ncclInProgress;
  poll_until([&] { return (result = async_error()) != ncclInProgress; }, deadline);
  return result;
}

ncclResult_t Communicator::async_error() {
  const std::lock_guard lock(mutex_);
  if (stop_ == Stop::underway) return ncclInProgress;
  return stop_ == Stop::done || !comm_ ? ncclSuccess : state_of(comm_, api());
}

std::string Communicator::describe(ncclResult_t result) {
  const std::lock_guard lock(mutex_);
  return describe_error(api(), result, comm_);
}

void Communicator::stop(const std::string& exit_message) {
  const Deadline deadline = Deadline::after(dependencies_.abort_timeout);
  {
    std::unique_lock lock(mutex_);
    stop_ = Stop::underway;
    // A launch may wait in CUDA for room on the stream, which only the revoke makes.
    launched_.wait_for(lock, dependencies_.abort_timeout / 4, [&] { return launches_ == 0; });
  }
  if (!revoke(deadline, exit_message)) abort_by(deadline, exit_message);
  const std::lock_guard lock(mutex_);
  stop_ = Stop::done;
}

/// False if NCCL refuses. Ends the process if the revoke does not complete. What it reports then does not matter: an
/// error of NCCL's network stays the state of a revoked communicator, and an abort would not wait for live graphs.
bool Communicator::revoke(Deadline deadline, const std::string& exit_message) {
  ncclComm_t comm = nullptr;
  {
    const std::lock_guard lock(mutex_);
    comm = comm_;
  }
  if (!comm) return true;
  if (!api().comm_revoke) return false;
  const std::optional<ncclResult_t> result = run_by(deadline, comm, [api = api(), deadline](ncclComm_t revoked) {
    if (api.comm_revoke(revoked, NCCL_REVOKE_DEFAULT) == ncclInvalidArgument) return ncclInvalidArgument;
    return completed(ncclInProgress, revoked, api, deadline) == ncclInProgress ? ncclInProgress : ncclSuccess;
  });
  if (result && *result != ncclInProgress) return *result == ncclSuccess;
  take();  // left to the revoke
  dependencies_.exit_process(exit_message);
  return true;
}

void Communicator::finish() {
  const Deadline deadline = Deadline::after(dependencies_.abort_timeout);
  run_by(deadline, take(), [api = api(), deadline](ncclComm_t comm) {
    const ncclResult_t result = completed(api.comm_finalize(comm), comm, api, deadline);
    if (result == ncclInProgress) return result;  // left behind
    return result == ncclSuccess ? api.comm_destroy(comm) : api.comm_abort(comm);
  });
}

void Communicator::abort(const std::string& exit_message) {
  abort_by(Deadline::after(dependencies_.abort_timeout), exit_message);
}

void Communicator::abort_by(Deadline deadline, const std::string& exit_message) {
  if (!run_by(deadline, take(), api().comm_abort)) dependencies_.exit_process(exit_message);
}

/// The communicator, which no other thread finds from now on.
ncclComm_t Communicator::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(comm_, nullptr);
}

/// The result of `end` if it returns before the deadline; otherwise its thread is left behind. Called without the lock.
std::optional<ncclResult_t> Communicator::run_by(Deadline deadline, ncclComm_t comm, const End& end) {
  if (!comm) return ncclSuccess;
  std::promise<ncclResult_t> ended;
  std::future<ncclResult_t> result = ended.get_future();
  std::thread([end, comm, make_current = make_current_, ended = std::move(ended)]() mutable {
    try {
      make_current();  // NCCL restores what was current: in a new thread that is device 0
    } catch (...) {    // a failed device: the communicator is ended all the same
    }
    ended.set_value(end(comm));
  }).detach();
  if (result.wait_for(deadline.remaining()) != std::future_status::ready) return std::nullopt;
  return result.get();
}

}  // namespace gradring::comm::nccl
