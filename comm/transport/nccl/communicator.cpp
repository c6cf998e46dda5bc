// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/nccl/communicator.h"

#include <fmt/format.h>

#include <future>
#include <thread>
#include <utility>

namespace gradring::comm::nccl {
namespace {

bool is_accepted(ncclResult_t result) { return result == ncclSuccess || result == ncclInProgress; }

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
    if (!comm_ || stopped_) return ncclSuccess;
    ncclResult_t result = api().group_start();
    if (result != ncclSuccess) return result;
    result = calls(comm_);
    const ncclResult_t end = api().group_end();  // also after an error, or the next group would be nested
    if (!is_accepted(result)) return result;
    if (!is_accepted(end)) return end;
  }
  return complete(deadline);
}

/// NCCL completes a call in its own thread; before that, no work may be enqueued after it on the stream.
ncclResult_t Communicator::complete(Deadline deadline) {
  ncclResult_t result = ncclInProgress;
  poll_until(
      [&] {
        result = async_error();
        return result != ncclInProgress;
      },
      deadline);
  return result;
}

ncclResult_t Communicator::async_error() {
  const std::lock_guard lock(mutex_);
  return stopped_ ? ncclSuccess : state();
}

/// Requires the lock.
ncclResult_t Communicator::state() {
  if (!comm_) return ncclSuccess;
  ncclResult_t error = ncclSuccess;
  const ncclResult_t result = api().comm_get_async_error(comm_, &error);
  return result == ncclSuccess ? error : result;
}

std::string Communicator::describe(ncclResult_t result) {
  const std::lock_guard lock(mutex_);
  return describe_error(api(), result, comm_);
}

void Communicator::stop(const std::string& exit_message) {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  const Deadline deadline = Deadline::after(dependencies_.abort_timeout);
  if (revoke(Deadline::after(dependencies_.abort_timeout / 2))) return;
  if (!free_by(api().comm_abort, deadline)) dependencies_.exit_process(exit_message);
}

/// False if NCCL cannot, or does not complete it in time.
bool Communicator::revoke(Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (!comm_) return true;
    if (!api().comm_revoke || !is_accepted(api().comm_revoke(comm_, NCCL_REVOKE_DEFAULT))) return false;
  }
  ncclResult_t result = ncclInProgress;
  poll_until(
      [&] {
        const std::lock_guard lock(mutex_);
        result = state();
        return result != ncclInProgress;
      },
      deadline);
  return result == ncclSuccess;
}

void Communicator::finish(Deadline deadline, const std::string& exit_message) {
  ncclResult_t result = ncclSuccess;
  {
    const std::lock_guard lock(mutex_);
    if (comm_) result = api().comm_finalize(comm_);
  }
  if (is_accepted(result)) result = complete(deadline);
  if (result != ncclSuccess) return abort(exit_message);
  free_by(api().comm_destroy, Deadline::after(dependencies_.abort_timeout));
}

void Communicator::abort(const std::string& exit_message) {
  if (!free_by(api().comm_abort, Deadline::after(dependencies_.abort_timeout)))
    dependencies_.exit_process(exit_message);
}

/// Whether `free` returned before the deadline; otherwise its thread is left behind. Called without the lock, since
/// other threads no longer find the communicator.
bool Communicator::free_by(const std::function<ncclResult_t(ncclComm_t)>& free, Deadline deadline) {
  ncclComm_t comm = nullptr;
  {
    const std::lock_guard lock(mutex_);
    comm = std::exchange(comm_, nullptr);
  }
  if (!comm) return true;
  std::promise<void> ended;
  const std::future<void> end = ended.get_future();
  std::thread([free, comm, make_current = make_current_, ended = std::move(ended)]() mutable {
    try {
      make_current();  // NCCL restores what was current: in a new thread that is device 0
    } catch (...) {    // a failed device: the communicator is freed all the same
    }
    free(comm);
    ended.set_value();
  }).detach();
  return end.wait_for(deadline.remaining()) == std::future_status::ready;
}

}  // namespace gradring::comm::nccl
