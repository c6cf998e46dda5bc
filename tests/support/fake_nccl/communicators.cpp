// SPDX-License-Identifier: Apache-2.0
// The life of a communicator: what NCCL waits for before it connects, completes and frees one.
#include <algorithm>
#include <cstring>

#include "tests/support/fake_nccl/rules.h"

namespace gradring::tests {

ncclResult_t FakeNccl::State::refuse(ncclComm_t comm, ncclResult_t result, const std::string& text) {
  comm->last_error = text;
  return result;
}

FakeNccl::State::Lock FakeNccl::State::enter(ncclComm_t comm) {
  Lock lock(mutex);
  if (const Wrong wrong = freed(*comm)) misuse.note(*wrong);
  changed.wait(lock, [&] { return !comm->stopped; });
  return lock;
}

/// A blocking communicator, which is NCCL's default, returns when all ranks have called (User Guide, ncclConfig_t).
ncclResult_t FakeNccl::State::init(int rank, ncclComm_t* comm, int world_size, const ncclUniqueId& id,
                                   const ncclConfig_t* config) {
  Lock lock(mutex);
  environments[rank].read = true;
  if (behaviour.init_fails_for == rank) return ncclSystemError;
  ncclComm& made = *comms.emplace_back(std::make_unique<ncclComm>());
  *comm = &made;
  made.rank = rank;
  std::memcpy(&made.clique, id.internal, sizeof made.clique);
  made.world_size = world_size;
  made.device = FakeGpu::current();
  made.blocking = config->blocking != 0;
  made.polls = behaviour.polls_in_progress;
  if (const Wrong wrong = invalid_config(*config)) return refuse(&made, ncclInvalidArgument, *wrong);
  for (const auto& other : comms)
    if (const Wrong wrong = same_gpu(made, *other))
      made.error = other->error = refuse(&made, refuse(other.get(), ncclInvalidUsage, *wrong), *wrong);
  ++arrived[made.clique];
  changed.notify_all();
  if (!made.blocking) return ncclInProgress;
  wait_until_settled(&made, lock);
  return made.error;
}

/// An error of the network remains after a revoke, which is in progress before that (init.cc, ncclCommGetAsyncError).
ncclResult_t FakeNccl::State::async_error(ncclComm_t comm, ncclResult_t* error) {
  Lock lock = enter(comm);
  *error = comm->error;
  if ((comm->error == ncclSuccess || comm->revoked) && !settle(comm, lock)) *error = ncclInProgress;
  return ncclSuccess;
}

bool FakeNccl::State::settle(ncclComm_t comm, Lock& lock) {
  if (comm->revoked && !complete_revoke(*comm)) return false;
  if (arrived[comm->clique] < comm->world_size) return false;
  if (comm->polls > 0 && comm->polls-- > 0) return false;
  if (!comm->held.empty()) {
    if (!std::ranges::all_of(comm->held, [&](const Operation& held) { return is_connected(held); })) return false;
    launch(comm, lock);
  }
  // ncclCommFinalize waits for the operations, and for the graphs that can repeat them (init.cc, commDestroySync).
  return !comm->finalizing || comm->in_flight + comm->graphs == 0;
}

void FakeNccl::State::wait_until_settled(ncclComm_t comm, Lock& lock) {
  comm->polls = 0;
  while (!settle(comm, lock)) changed.wait(lock);
}

ncclResult_t FakeNccl::State::finalize(ncclComm_t comm) {
  Lock lock = enter(comm);
  if (comm->revoked) return refuse(comm, ncclInvalidUsage, "ncclCommFinalize after ncclCommRevoke");
  if (const Wrong wrong = in_progress(settle(comm, lock))) return refuse(comm, ncclInvalidArgument, *wrong);
  if (std::exchange(comm->finalizing, true)) return refuse(comm, ncclInvalidArgument, "finalized twice");
  comm->polls = behaviour.polls_in_progress;
  if (comm->blocking) wait_until_settled(comm, lock);
  return comm->blocking ? ncclSuccess : ncclInProgress;
}

/// Ends all operations (init.cc, ncclCommRevoke).
ncclResult_t FakeNccl::State::revoke(ncclComm_t comm) {
  Lock lock = enter(comm);
  if (comm->revoked || comm->finalizing) return refuse(comm, ncclInvalidArgument, "revoked twice, or finalized");
  drop_held_group(comm);
  comm->revoked = comm->aborted = true;
  comm->polls = behaviour.polls_in_progress;
  changed.notify_all();
  changed.wait(lock, [&] { return comm->killed || !behaviour.revokes_hang; });
  return ncclInProgress;
}

/// A revoke is complete when the operations, those of launched graphs too, and the proxy thread have ended. It then
/// allows operations again, so that a graph launched later waits for its peers (init.cc, commRevokeAsync).
bool FakeNccl::State::complete_revoke(ncclComm& comm) {
  if (comm.in_flight > 0 || !peers_have_ended(comm)) return false;
  if (!comm.freeing) comm.aborted = false;
  return true;
}

ncclResult_t FakeNccl::State::destroy(ncclComm_t comm) {
  Lock lock = enter(comm);
  return free(comm, false, lock);
}

ncclResult_t FakeNccl::State::abort(ncclComm_t comm) {
  Lock lock = enter(comm);
  return free(comm, true, lock);
}

/// A destroy and an abort wait until no graph refers to the communicator (init.cc, commDestroySync), but not after a
/// revoke.
ncclResult_t FakeNccl::State::free(ncclComm_t comm, bool aborts, Lock& lock) {
  if (const Wrong wrong = frees_with_another_device(*comm, FakeGpu::current())) misuse.note(*wrong);
  if (const Wrong wrong = frees_under_a_graph(*comm)) misuse.note(*wrong);
  comm->freeing = true;
  drop_held_group(comm);
  if (aborts && !behaviour.aborts_hang) comm->aborted = true;
  changed.notify_all();
  changed.wait(lock, [&] {
    const bool ended = (comm->revoked || comm->graphs == 0) && peers_have_ended(*comm);
    return comm->killed || (!behaviour.aborts_hang && ended);
  });
  comm->aborted |= aborts;
  comm->freed = true;
  changed.notify_all();
  return ncclSuccess;
}

/// A communicator's proxy thread serves the connected peers on this host until they have ended theirs or are gone
/// (proxy.cc, ncclProxyService).
bool FakeNccl::State::peers_have_ended(const ncclComm& comm) const {
  return std::ranges::all_of(comms, [&](const auto& peer) {
    const bool connected =
        is_connected(comm.clique, comm.rank, peer->rank) || is_connected(comm.clique, peer->rank, comm.rank);
    const bool ended = peer->revoked || peer->freeing || peer->killed;
    return peer.get() == &comm || peer->clique != comm.clique || !connected || ended;
  });
}

}  // namespace gradring::tests
