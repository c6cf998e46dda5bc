// SPDX-License-Identifier: Apache-2.0
// Groups of operations: collected by a thread, held until their ranks are connected, then launched on their streams.
#include <utility>

#include "tests/support/fake_nccl/rules.h"

namespace gradring::tests {
namespace {

constexpr int kAllRanks = -1;  // the peer of a collective

}  // namespace

ncclResult_t FakeNccl::State::group_start() {
  const std::lock_guard lock(mutex);
  ++open_groups[std::this_thread::get_id()].depth;
  return ncclSuccess;
}

ncclResult_t FakeNccl::State::check(const Operation& operation, Lock& lock) {
  ncclComm_t comm = operation.comm;
  if (const Wrong wrong = revoked(*comm)) return refuse(comm, ncclInvalidUsage, *wrong);
  if (comm->error != ncclSuccess) return comm->error;
  if (const Wrong wrong = in_progress(settle(comm, lock))) return refuse(comm, ncclInvalidArgument, *wrong);
  if (const Wrong wrong = stream_of_another_gpu(operation)) return refuse(comm, ncclUnhandledCudaError, *wrong);
  return ncclSuccess;
}

/// A refused call fails its group and, unless it was revoked, its non-blocking communicator (enqueue.cc,
/// ncclEnqueueCheck; group.h, ncclGroupErrCheck).
ncclResult_t FakeNccl::State::add(Operation operation, cudaStream_t stream) {
  ncclComm_t comm = operation.comm;
  Lock lock = enter(comm);
  OpenGroup& group = open_groups[std::this_thread::get_id()];
  operation.stream = dynamic_cast<FakeStream*>(reinterpret_cast<simt::LaunchQueue*>(stream));
  if (const ncclResult_t result = check(operation, lock); result != ncclSuccess) {
    if (group.depth > 0) group.error = result;
    if (!comm->revoked && !comm->blocking) comm->error = result;
    return result;
  }
  for (const Wrong& wrong : {outside_of_group(group.depth), captured_by_another_thread(operation)})
    if (wrong) misuse.note(*wrong);
  group.operations.push_back(operation);
  return ncclSuccess;
}

ncclResult_t FakeNccl::State::group_end() {
  Lock lock(mutex);
  OpenGroup& group = open_groups[std::this_thread::get_id()];
  if (group.depth == 0) return ncclInvalidUsage;
  if (--group.depth > 0) return ncclSuccess;
  const auto [depth, operations, error] = std::exchange(group, {});
  if (error != ncclSuccess) {  // none of its operations runs (group.cc, groupCleanup)
    for (const Operation& operation : operations)
      if (!operation.comm->blocking) operation.comm->error = error;
    return error;
  }
  if (operations.empty()) return ncclSuccess;
  ncclComm_t comm = operations.front().comm;
  if (const Wrong wrong = mixes_blocking(operations)) return refuse(comm, ncclInvalidArgument, *wrong);
  if (const Wrong wrong = overlapping_buffers(operations)) misuse.note(*wrong);
  ++groups;
  for (const Operation& operation : operations) {
    const ncclComm& mine = *operation.comm;
    if (operation.kind == Operation::Kind::send) connectors.insert({mine.clique, mine.rank, operation.peer, true});
    if (operation.kind == Operation::Kind::receive) connectors.insert({mine.clique, operation.peer, mine.rank, false});
    if (operation.kind == Operation::Kind::all_reduce) connectors.insert({mine.clique, mine.rank, kAllRanks, true});
    operation.comm->held.push_back(operation);
    operation.comm->polls = behaviour.polls_in_progress;
    operation.stream->hold_operation();
  }
  changed.notify_all();
  if (comm->blocking) wait_until_settled(comm, lock);
  return comm->blocking ? ncclSuccess : ncclInProgress;
}

/// The first group with a peer waits in ncclGroupEnd, or in progress after it, for the peer's group that connects the
/// other end (group.cc, ncclP2PPreconnectFunc), and the first collective for all ranks (ncclCollPreconnect). It
/// waits forever for a peer that never comes.
bool FakeNccl::State::is_connected(const Operation& operation) const {
  const auto& [clique, rank] = std::pair(operation.comm->clique, operation.comm->rank);
  switch (operation.kind) {
    case Operation::Kind::send: return is_connected(clique, rank, operation.peer);
    case Operation::Kind::receive: return is_connected(clique, operation.peer, rank);
    case Operation::Kind::all_reduce:
      for (int peer = 0; peer < operation.comm->world_size; ++peer)
        if (!connectors.contains({clique, peer, kAllRanks, true})) return false;
      return true;
  }
  return false;
}

bool FakeNccl::State::is_connected(int clique, int from, int to) const {
  return connectors.contains({clique, from, to, true}) && connectors.contains({clique, from, to, false});
}

/// NCCL launches a group from a thread of its own after ncclGroupEnd (group.cc, groupLaunchNonBlocking): until then its
/// stream knows nothing of it.
void FakeNccl::State::launch(ncclComm_t comm, Lock& lock) {
  std::map<FakeStream*, std::vector<Operation>> by_stream;
  for (Operation& operation : std::exchange(comm->held, {})) {
    operation.captured = operation.stream->capture() != nullptr;
    operation.registered = is_registered(operation, operation.captured);
    operation.stream->release_operation();
    by_stream[operation.stream].push_back(operation);
  }
  for (const auto& [stream, operations] : by_stream) {
    auto held = hold(stream->capture() ? comm->graphs : comm->in_flight);
    lock.unlock();  // the stream may end earlier work, which takes the lock
    stream->enqueue_group([state = shared_from_this(), operations = operations, held = std::move(held)] {
      const std::lock_guard relock(state->mutex);
      return
          [state, operations, in_flight = state->hold(operations.front().comm->in_flight)] { state->run(operations); };
    });
    lock.lock();
  }
}

void FakeNccl::State::drop_held_group(ncclComm_t comm) {
  for (const Operation& operation : std::exchange(comm->held, {})) operation.stream->release_operation();
}

std::shared_ptr<void> FakeNccl::State::hold(int& counter) {
  ++counter;
  return {&counter, [state = shared_from_this()](void* held) {
            {
              const std::lock_guard lock(state->mutex);
              --*static_cast<int*>(held);
            }
            state->changed.notify_all();
          }};
}

/// By ncclCommRegister, or, in a graph, because NCCL can export it (sendrecv_reg.cc; NCCL_GRAPH_REGISTER is 1).
bool FakeNccl::State::is_registered(const Operation& operation, bool captured) {
  const void* const data = operation.kind == Operation::Kind::receive ? operation.to : operation.from;
  const auto contains = [&](const std::map<const void*, std::size_t>& blocks) {
    const auto next = blocks.upper_bound(data);
    if (next == blocks.begin()) return false;
    const auto& [begin, bytes] = *std::prev(next);
    return static_cast<const std::byte*>(data) < static_cast<const std::byte*>(begin) + bytes;
  };
  return contains(registered) ||
         (captured && environments[operation.comm->rank].graphs_register() && contains(exportable));
}

}  // namespace gradring::tests
