// SPDX-License-Identifier: Apache-2.0
// How a stream runs the operations of a group: concurrently, each as soon as its peer is ready.
#include <algorithm>
#include <cstring>

#include "comm/transport/sum.h"
#include "tests/support/fake_nccl/rules.h"

namespace gradring::tests {
namespace {

/// A running operation of a group.
struct Underway {
  Operation operation;
  std::shared_ptr<Message> message;  // of a send
  std::uint64_t reduction = 0;       // number of an all-reduce
  bool joined = false;               // it contains this rank's part
  bool refused = false;              // it breaks a rule: it hangs
  bool done = false;
};

/// True if it made progress.
bool advance_receive(FakeNccl::State& state, Underway& one) {
  const Operation& mine = one.operation;
  auto& channel = state.channels[{mine.comm->clique, mine.peer, mine.comm->rank}];
  if (channel.empty() || one.refused) return false;
  const Operation& theirs = channel.front()->operation;
  for (const Wrong& wrong :
       {mismatched_sizes(theirs, mine), mixed_registration(theirs, mine), mixed_capture(theirs, mine)}) {
    if (!wrong) continue;
    state.misuse.note(*wrong);
    one.refused = true;
    return false;
  }
  std::memcpy(mine.to, theirs.from, bytes_of(mine));
  channel.front()->taken = true;
  channel.pop_front();
  return one.done = true;
}

bool advance_reduction(FakeNccl::State& state, Underway& one) {
  const Operation& mine = one.operation;
  Reduction& all = state.reductions[{mine.comm->clique, one.reduction}];
  if (one.refused) return false;
  const bool joins = !std::exchange(one.joined, true);
  if (joins) {
    if (all.arrived == 0) all.first = mine;
    for (const Wrong& wrong : {mismatched_reductions(all.first, mine), mixed_capture(all.first, mine)}) {
      if (!wrong) continue;
      state.misuse.note(*wrong);
      one.refused = true;
      return false;
    }
    const auto* const part = static_cast<const std::byte*>(mine.from);
    if (all.arrived++ == 0)
      all.sum.assign(part, part + bytes_of(mine));
    else
      comm::add_into(all.sum.data(), part, mine.count, dtype_of(mine.type));
  }
  one.done = all.arrived == mine.comm->world_size;
  if (one.done) std::memcpy(mine.to, all.sum.data(), bytes_of(mine));
  return joins || one.done;
}

bool advance(FakeNccl::State& state, Underway& one) {
  switch (one.operation.kind) {
    case Operation::Kind::send: return one.done = one.message->taken;
    case Operation::Kind::receive: return advance_receive(state, one);
    case Operation::Kind::all_reduce: return advance_reduction(state, one);
  }
  return false;
}

}  // namespace

std::size_t bytes_of(const Operation& operation) { return operation.count * size_of(dtype_of(operation.type)); }

void FakeNccl::State::run(const std::vector<Operation>& operations) {
  std::unique_lock lock(mutex);
  ncclComm* const comm = operations.front().comm;
  changed.wait(lock, [&] { return (!comm->killed && !comm->stopped) || comm->aborted; });
  std::vector<Underway> underway;
  for (const Operation& operation : operations) {
    Underway one{.operation = operation};
    if (operation.kind == Operation::Kind::send) {
      one.message = std::make_shared<Message>(Message{.operation = operation});
      channels[{comm->clique, comm->rank, operation.peer}].push_back(one.message);
    }
    if (operation.kind == Operation::Kind::all_reduce) one.reduction = comm->reductions++;
    underway.push_back(std::move(one));
  }
  changed.notify_all();
  while (!comm->aborted && !underway.empty()) {
    bool moved = false;
    for (Underway& one : underway) moved |= advance(*this, one);
    std::erase_if(underway, [](const Underway& one) { return one.done; });
    if (moved)
      changed.notify_all();
    else
      changed.wait(lock);
  }
  for (const Underway& one : underway)  // aborted: peers must not read its memory
    if (one.message) std::erase(channels[{comm->clique, comm->rank, one.operation.peer}], one.message);
}

}  // namespace gradring::tests
