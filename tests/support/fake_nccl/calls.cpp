// SPDX-License-Identifier: Apache-2.0
// The synchronous part of NCCL's functions; work.cpp has the streams' part.
#include <cstring>
#include <new>

#include "kernels/simt/executor.h"
#include "tests/support/fake_nccl/state.h"

namespace gradring::tests {
namespace {

constexpr std::align_val_t kAlignment{256};

}  // namespace

ncclResult_t FakeNccl::State::init(int rank, ncclComm_t* comm, int world_size, const ncclUniqueId& id) {
  const std::lock_guard lock(mutex);
  if (behaviour.init_fails_for == rank) return ncclSystemError;
  comms.push_back(std::make_unique<ncclComm>());
  *comm = comms.back().get();
  (*comm)->rank = rank;
  std::memcpy(&(*comm)->clique, id.internal, sizeof(*comm)->clique);
  (*comm)->world_size = world_size;
  (*comm)->polls = behaviour.polls_in_progress;
  ++arrived[(*comm)->clique];
  return ncclInProgress;
}

ncclResult_t FakeNccl::State::async_error(ncclComm_t comm, ncclResult_t* error) {
  const std::lock_guard lock(mutex);
  if (comm->freed) note_misuse("ncclCommGetAsyncError after the communicator was freed");
  *error = comm->error;
  if (comm->error == ncclSuccess && (arrived[comm->clique] < comm->world_size || comm->polls > 0)) {
    if (comm->polls > 0) --comm->polls;
    *error = ncclInProgress;
  }
  return ncclSuccess;
}

ncclResult_t FakeNccl::State::abort(ncclComm_t comm) {
  {
    std::unique_lock lock(mutex);
    if (std::exchange(comm->freed, true)) note_misuse("ncclCommAbort after the communicator was freed");
    changed.wait(lock, [this] { return !behaviour.aborts_hang; });
    comm->aborted = true;
  }
  changed.notify_all();
  return ncclSuccess;
}

ncclResult_t FakeNccl::State::retire(ncclComm_t comm, bool frees) {
  const std::lock_guard lock(mutex);
  if (comm->freed) note_misuse("ncclCommFinalize or ncclCommDestroy after the communicator was freed");
  comm->freed = frees;
  comm->polls = behaviour.polls_in_progress;
  return frees ? ncclSuccess : ncclInProgress;
}

ncclResult_t FakeNccl::State::group_start() {
  const std::lock_guard lock(mutex);
  ++open_groups[std::this_thread::get_id()].first;
  return ncclSuccess;
}

ncclResult_t FakeNccl::State::add(const Operation& operation) {
  const std::lock_guard lock(mutex);
  auto& [depth, operations] = open_groups[std::this_thread::get_id()];
  if (depth == 0) note_misuse("a call outside of a group: it would block until its peer's call");
  if (operation.comm->freed) note_misuse("a call on a freed communicator");
  if (operation.comm->polls > 0) note_misuse("a call on a communicator that is still in progress");
  operations.push_back(operation);
  return ncclSuccess;
}

ncclResult_t FakeNccl::State::group_end() {
  std::map<cudaStream_t, std::vector<Operation>> by_stream;
  {
    const std::lock_guard lock(mutex);
    auto& [depth, operations] = open_groups[std::this_thread::get_id()];
    if (depth == 0) note_misuse("ncclGroupEnd without ncclGroupStart");
    if (--depth > 0) return ncclSuccess;
    for (Operation& operation : operations) {
      operation.comm->polls = behaviour.polls_in_progress;
      if (operation.kind == Operation::Kind::all_reduce) operation.reduction = operation.comm->reductions++;
      by_stream[operation.stream].push_back(operation);
    }
    operations.clear();
    ++groups;
  }
  for (const auto& [stream, operations] : by_stream)
    reinterpret_cast<simt::LaunchQueue*>(stream)->enqueue_launch(
        [state = shared_from_this(), operations](simt::Executor&) { state->run(operations); });
  return ncclInProgress;
}

ncclResult_t FakeNccl::State::allocate(int rank, void** data, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  if (behaviour.no_memory_for == rank) return ncclUnhandledCudaError;
  *data = ::operator new(bytes, kAlignment);
  memory.insert(*data);
  return ncclSuccess;
}

ncclResult_t FakeNccl::State::free(void* data) {
  const std::lock_guard lock(mutex);
  if (memory.erase(data) == 0) note_misuse("ncclMemFree of memory that is not from ncclMemAlloc");
  if (registered.contains(data)) note_misuse("ncclMemFree of registered memory");
  ::operator delete(data, kAlignment);
  return ncclSuccess;
}

ncclResult_t FakeNccl::State::register_memory(int rank, void* data, void** handle) {
  const std::lock_guard lock(mutex);
  if (behaviour.no_registration_for == rank) return ncclInvalidUsage;
  registered.insert(data);
  *handle = data;
  return ncclSuccess;
}

ncclResult_t FakeNccl::State::deregister(void* handle) {
  const std::lock_guard lock(mutex);
  if (registered.erase(handle) == 0) note_misuse("ncclCommDeregister of memory that is not registered");
  return ncclSuccess;
}

}  // namespace gradring::tests
