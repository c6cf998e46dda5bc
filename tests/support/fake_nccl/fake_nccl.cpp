// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_nccl/fake_nccl.h"

#include <cstring>

#include "tests/support/fake_nccl/state.h"

namespace gradring::tests {

FakeNccl::FakeNccl(const Behaviour& behaviour) : state_(std::make_shared<State>(behaviour)) {}

FakeNccl::~FakeNccl() { let_aborts_end(); }

comm::nccl::Api FakeNccl::api(int rank) {
  const std::shared_ptr<State> state = state_;
  using Kind = Operation::Kind;
  return {
      .get_version = [state](int* version) { return *version = state->behaviour.version, ncclSuccess; },
      .get_error_string = [](ncclResult_t result) { return result == ncclRemoteError ? "remote error" : "an error"; },
      .get_unique_id =
          [state](ncclUniqueId* id) {
            const std::lock_guard lock(state->mutex);
            *id = {};
            const int clique = ++state->cliques;
            std::memcpy(id->internal, &clique, sizeof clique);
            return ncclSuccess;
          },
      .comm_init_rank_config = [state, rank](ncclComm_t* comm, int world_size, ncclUniqueId id, int,
                                             ncclConfig_t*) { return state->init(rank, comm, world_size, id); },
      .comm_get_async_error = [state](ncclComm_t comm, ncclResult_t* error) { return state->async_error(comm, error); },
      .comm_finalize = [state](ncclComm_t comm) { return state->retire(comm, false); },
      .comm_destroy = [state](ncclComm_t comm) { return state->retire(comm, true); },
      .comm_abort = [state](ncclComm_t comm) { return state->abort(comm); },
      .mem_alloc = [state, rank](void** data, std::size_t bytes) { return state->allocate(rank, data, bytes); },
      .mem_free = [state](void* data) { return state->free(data); },
      .comm_register = [state, rank](ncclComm_t, void* data, std::size_t,
                                     void** handle) { return state->register_memory(rank, data, handle); },
      .comm_deregister = [state](ncclComm_t, void* handle) { return state->deregister(handle); },
      .group_start = [state] { return state->group_start(); },
      .group_end = [state] { return state->group_end(); },
      .send =
          [state](const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                  cudaStream_t stream) {
            return state->add({.kind = Kind::send,
                               .comm = comm,
                               .stream = stream,
                               .from = from,
                               .count = count,
                               .type = type,
                               .peer = peer});
          },
      .recv =
          [state](void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
            return state->add({.kind = Kind::receive,
                               .comm = comm,
                               .stream = stream,
                               .to = to,
                               .count = count,
                               .type = type,
                               .peer = peer});
          },
      .all_reduce =
          [state](const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t, ncclComm_t comm,
                  cudaStream_t stream) {
            return state->add({.kind = Kind::all_reduce,
                               .comm = comm,
                               .stream = stream,
                               .from = from,
                               .to = to,
                               .count = count,
                               .type = type});
          },
  };
}

void FakeNccl::kill(int rank) {
  const std::lock_guard lock(state_->mutex);
  for (const auto& comm : state_->comms)
    if (comm->rank == rank) comm->killed = true;
}

void FakeNccl::fail(int rank, ncclResult_t error) {
  const std::lock_guard lock(state_->mutex);
  for (const auto& comm : state_->comms)
    if (comm->rank == rank) comm->error = error;
}

void FakeNccl::let_aborts_end() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->behaviour.aborts_hang = false;
  }
  state_->changed.notify_all();
}

std::vector<std::string> FakeNccl::misuse() const {
  const std::lock_guard lock(state_->mutex);
  return state_->misuse;
}

std::size_t FakeNccl::groups() const {
  const std::lock_guard lock(state_->mutex);
  return state_->groups;
}

}  // namespace gradring::tests
