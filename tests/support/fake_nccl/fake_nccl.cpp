// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_nccl/fake_nccl.h"

#include <algorithm>
#include <cstring>

#include "tests/support/fake_nccl/rules.h"

namespace gradring::tests {
namespace {

constexpr int kFirstWithRevoke = 22807;  // NCCL_VERSION_CODE

}  // namespace

FakeNccl::FakeNccl(const Behaviour& behaviour, MisuseLog& misuse)
    : state_(std::make_shared<State>(behaviour, misuse)) {}

FakeNccl::~FakeNccl() {
  const std::lock_guard lock(state_->mutex);
  for (const auto& comm : state_->comms) comm->killed = comm->aborted = true;  // nothing may hang any longer
  state_->changed.notify_all();
}

comm::nccl::Api FakeNccl::api(int rank) {
  const std::shared_ptr<State> state = state_;
  using Kind = Operation::Kind;
  return {
      .get_version = [state](int* version) { return *version = state->behaviour.version, ncclSuccess; },
      .get_error_string =
          [](ncclResult_t result) {
            return result == ncclRemoteError    ? "remote error"
                   : result == ncclInvalidUsage ? "invalid usage"
                                                : "an error";
          },
      .get_last_error =
          [state](ncclComm_t comm) {
            const std::lock_guard lock(state->mutex);
            return comm ? comm->last_error.c_str() : "";
          },
      .get_unique_id =
          [state, rank](ncclUniqueId* id) {
            const std::lock_guard lock(state->mutex);
            state->environments[rank].read = true;
            *id = {};
            const int clique = ++state->cliques;
            std::memcpy(id->internal, &clique, sizeof clique);
            return ncclSuccess;
          },
      .comm_init_rank_config = [state, rank](
                                   ncclComm_t* comm, int world_size, ncclUniqueId id, int,
                                   ncclConfig_t* config) { return state->init(rank, comm, world_size, id, config); },
      .comm_get_async_error = [state](ncclComm_t comm, ncclResult_t* error) { return state->async_error(comm, error); },
      .comm_finalize = [state](ncclComm_t comm) { return state->finalize(comm); },
      .comm_destroy = [state](ncclComm_t comm) { return state->destroy(comm); },
      .comm_abort = [state](ncclComm_t comm) { return state->abort(comm); },
      .comm_revoke = state->behaviour.version < kFirstWithRevoke
                         ? std::function<decltype(ncclCommRevoke)>()
                         : [state](ncclComm_t comm, int) { return state->revoke(comm); },
      .group_start = [state] { return state->group_start(); },
      .group_end = [state] { return state->group_end(); },
      .send =
          [state](const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                  cudaStream_t stream) {
            return state->add(
                {.kind = Kind::send, .comm = comm, .from = from, .count = count, .type = type, .peer = peer}, stream);
          },
      .recv =
          [state](void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
            return state->add(
                {.kind = Kind::receive, .comm = comm, .to = to, .count = count, .type = type, .peer = peer}, stream);
          },
      .all_reduce =
          [state](const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t, ncclComm_t comm,
                  cudaStream_t stream) {
            return state->add(
                {.kind = Kind::all_reduce, .comm = comm, .from = from, .to = to, .count = count, .type = type}, stream);
          },
  };
}

void* FakeNccl::mem_alloc(std::size_t bytes) {
  const std::lock_guard lock(state_->mutex);
  void* const data = state_->allocated.emplace_back(bytes).data();
  state_->exportable[data] = bytes;
  return data;
}

void FakeNccl::comm_register(const void* data, std::size_t bytes) {
  const std::lock_guard lock(state_->mutex);
  state_->registered[data] = bytes;
}

void FakeNccl::set_environment(int rank, const std::string& name, const std::string& value) {
  const std::lock_guard lock(state_->mutex);
  Environment& environment = state_->environments[rank];
  if (const Wrong wrong = set_too_late(rank, environment, name, value)) return state_->misuse.note(*wrong);
  environment.variables[name] = value;
}

void FakeNccl::change(int rank, const std::function<void(ncclComm&)>& change) {
  const std::lock_guard lock(state_->mutex);
  for (const auto& comm : state_->comms)
    if (comm->rank == rank) change(*comm);
  state_->changed.notify_all();
}

void FakeNccl::kill(int rank) {
  change(rank, [](ncclComm& comm) { comm.killed = true; });
}

void FakeNccl::stop(int rank) {
  change(rank, [](ncclComm& comm) { comm.stopped = true; });
}

void FakeNccl::resume(int rank) {
  change(rank, [](ncclComm& comm) { comm.stopped = false; });
}

void FakeNccl::wait_while_stopped(int rank) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] {
    return std::ranges::none_of(state_->comms, [&](const auto& comm) { return comm->rank == rank && comm->stopped; });
  });
}

void FakeNccl::fail(int rank, ncclResult_t error) {
  change(rank, [error](ncclComm& comm) { comm.error = error; });
}

std::size_t FakeNccl::groups() const {
  const std::lock_guard lock(state_->mutex);
  return state_->groups;
}

}  // namespace gradring::tests
