// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/nccl/nccl_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "comm/transport/error.h"
#include "comm/transport/message.h"
#include "comm/transports/nccl/rank_info.h"
#include "kernels/base/error.h"

namespace gradring::comm::nccl {
namespace {

/// Between checks of a rank that is waited for.
constexpr std::chrono::milliseconds kCheckInterval(50);

/// "all_reduce 17 (ring) of 100 f32 from element 0 of segment 1"
std::string describe(std::string_view operation, std::uint64_t number, std::string_view algorithm,
                     const SegmentRange& range) {
  return fmt::format("{} {} ({}) of {} {} from element {} of segment {}", operation, number, algorithm,
                     range.slice.elements, name_of(range.dtype), range.slice.offset,
                     range.segment ? range.segment->number() : 0);
}

std::string describe(const Step& step) {
  const std::string algorithm = step.root == kNoRoot ? std::string(name_of(step.algorithm))
                                                     : fmt::format("{}, root {}", name_of(step.algorithm), step.root);
  return describe(step.operation, step.collective, algorithm, step.range);
}

PeerProcesses watched_processes(const std::vector<RankInfo>& ranks, int rank) {
  const RankInfo& mine = ranks[static_cast<std::size_t>(rank)];
  PeerProcesses processes;
  for (const RankInfo& theirs : ranks) {
    const bool reachable = theirs.shares_namespaces(mine) && theirs.pid != mine.pid;
    processes.push_back(reachable ? std::make_unique<ProcessHandle>(theirs.pid) : nullptr);
  }
  return processes;
}

GroupFailure::Describe describe_by(const std::vector<RankInfo>& ranks) {
  return [ranks](int peer) { return ranks[static_cast<std::size_t>(peer)].process; };
}

}  // namespace

NcclTransport::NcclTransport(const NcclOptions& options, const Dependencies& dependencies,
                             std::unique_ptr<Communicator> communicator, const std::vector<RankInfo>& ranks,
                             const std::string& prefix)
    : options_(options),
      pipeline_(dependencies.pipeline),
      prefix_(prefix),
      communicator_(std::move(communicator)),
      propagation_(options.store, prefix, options.rank),
      health_(options.rank, describe_by(ranks), propagation_, *communicator_, dependencies.abort_timeout),
      reduction_stream_(options.device, options.kernels.accumulate, pipeline_.max_slice_bytes),
      empty_message_(options.device.allocate(2)),
      watchdog_(options_, health_, propagation_, *communicator_, watched_processes(ranks, options.rank)) {}

NcclTransport::~NcclTransport() {
  watchdog_.drain(Deadline::after(options_.timeout));
  health_.adopt(op_);
  if (!health_.failed()) propagation_.leave(watchdog_.begun());
  health_.finish();
}

void NcclTransport::submit(kernels::Stream& stream, std::function<void()> collective) {
  health_.throw_if_failed();
  stream_ = &stream;
  captured_ = options_.is_captured(stream);
  const auto enqueue_all = [&] {
    collective();
    reduction_stream_.join(stream);
  };
  run_and_end([&] { captured_ ? enqueue_all() : watch(stream, "collective", enqueue_all); },
              [this] { stream_ = nullptr; });
}

void NcclTransport::replay(kernels::Stream& stream, const std::function<void()>& launch) {
  health_.throw_if_failed();
  watch(stream, "graph", [&] { communicator_->launch(launch); });
  health_.throw_if_failed();  // before the launch, which then did not happen
}

/// Runs `enqueue`, which enqueues one collective, and has the watchdog watch it.
void NcclTransport::watch(kernels::Stream& stream, std::string_view operation, const std::function<void()>& enqueue) {
  watchdog_.begin(stream, operation);
  run_and_end(enqueue, [&] { watchdog_.end(stream); });
}

Progress NcclTransport::poll() {
  health_.throw_if_failed();
  return Progress::done;
}

void NcclTransport::wait(Deadline) { health_.throw_if_failed(); }

void NcclTransport::enqueue(const Step& step) {
  health_.throw_if_failed();
  check_step(step, *this);
  check(stream_ != nullptr, "a step was posted outside of submit: NCCL needs the stream of submit");
  std::vector<int> peers;
  std::size_t slices = 0;
  for (const Move& move : step.moves) {
    peers.push_back(move.peer);
    slices = std::max(slices, slice_count(step, move));
  }
  note({.operation = step.operation, .number = step.collective, .step = step.index}, describe(step), peers);
  for (std::size_t index = 0; index < slices; ++index)
    for (auto& [round, transfers] : transfers_of(step, index)) run(std::move(transfers));
}

/// The group of a step in which messages with `peer` go. Ranks at most two places apart on the circle of ranks come
/// first, then those at most four apart, and so on: four peers each time, for whom the reduction stream has scratch. It
/// depends on the two ranks only, so both put a message into the same group. If one of them split its messages by their
/// number alone, its group could wait for a later group of the other, and that for a later one of the first.
int NcclTransport::round_of(int peer) const {
  const int distance = std::abs(peer - rank());
  return (std::min(distance, world_size() - distance) - 1) / static_cast<int>(ReductionStream::kSlots / 2);
}

/// Depends only on the move's length, so that sender and receiver agree. A move without elements has no slices, except
/// in a step without segment, whose messages only synchronize.
std::size_t NcclTransport::slice_count(const Step& step, const Move& move) const {
  if (!step.range.segment) return 1;
  if (move.slice.elements == 0) return 0;
  const std::size_t bytes = move.slice.elements * size_of(step.range.dtype);
  if (bytes < 2 * pipeline_.min_slice_bytes) return 1;
  return std::max<std::size_t>(2, chunk_count(bytes, pipeline_.max_slice_bytes));
}

/// By round_of.
std::map<int, std::vector<NcclTransport::Transfer>> NcclTransport::transfers_of(const Step& step,
                                                                                std::size_t index) const {
  const kernels::DType dtype = step.range.dtype;
  std::map<int, std::vector<Transfer>> transfers;
  for (const Move& move : step.moves) {
    if (!step.range.segment) {
      std::byte* const byte = empty_message_.data() + (is_outgoing(move) ? 0 : 1);
      transfers[round_of(move.peer)].push_back({move.kind, move.peer, byte, 1, kernels::DType::u8});
      continue;
    }
    const std::size_t slices = slice_count(step, move);
    if (index >= slices) continue;
    const Slice slice = shard_of(move.slice.elements, slices, index);
    std::byte* const data =
        step.range.segment->data() + (step.range.slice.offset + move.slice.offset + slice.offset) * size_of(dtype);
    transfers[round_of(move.peer)].push_back({move.kind, move.peer, data, slice.elements, dtype});
  }
  return transfers;
}

void NcclTransport::run(std::vector<Transfer> transfers) {
  for (const Transfer& transfer : transfers)
    reduction_stream_.wait_for(transfer.data, transfer.elements * size_of(transfer.dtype), *stream_);
  for (Transfer& transfer : transfers)
    if (transfer.kind == Move::Kind::receive_add)
      transfer.data = reduction_stream_.reserve(transfer.data, transfer.elements, transfer.dtype, *stream_);
  const Api& api = communicator_->api();
  const auto stream = static_cast<cudaStream_t>(stream_->native_handle());
  run_group([&](ncclComm_t comm) {
    for (const Transfer& transfer : transfers) {
      const auto& [kind, peer, data, elements, dtype] = transfer;
      const ncclResult_t result = kind == Move::Kind::send
                                      ? api.send(data, elements, type_of(dtype), peer, comm, stream)
                                      : api.recv(data, elements, type_of(dtype), peer, comm, stream);
      if (result != ncclSuccess && result != ncclInProgress) return result;
    }
    return ncclSuccess;
  });
  reduction_stream_.add_reserved(*stream_);
}

void NcclTransport::run_group(const std::function<ncclResult_t(ncclComm_t)>& calls) {
  op_.since = Deadline::Clock::now();
  // Twice the timeout: the watchdog, which knows who is missing, reports a connection that takes longer than one.
  const ncclResult_t result = communicator_->group(calls, Deadline::after(2 * options_.timeout));
  health_.throw_if_failed();  // after a failure the communicator may be gone and the result is meaningless
  if (result == ncclSuccess) return;
  if (result == ncclInProgress)
    health_.fail(op_, [&](GroupFailure& failure) {
      failure.throw_timeout({}, -1, "does not answer NCCL's connect; look at its log, or raise the timeout", op_);
    });
  else
    health_.fail_in_nccl(result, op_);
  health_.throw_if_failed();
}

void NcclTransport::all_reduce(const SegmentRange& range, std::uint64_t number, kernels::Stream& stream) {
  submit(stream, [&] {
    note({.operation = "all_reduce", .number = number}, describe("all_reduce", number, "nccl", range), {});
    if (range.slice.elements == 0) return;
    std::byte* const data = range.segment->data() + range.slice.offset * size_of(range.dtype);
    run_group([&](ncclComm_t comm) {
      return communicator_->api().all_reduce(data, data, range.slice.elements, type_of(range.dtype), ncclSum, comm,
                                             static_cast<cudaStream_t>(stream.native_handle()));
    });
  });
}

void NcclTransport::note(const PendingOp& op, const std::string& what, const std::vector<int>& peers) {
  op_ = op;
  if (!captured_) watchdog_.note(op, what, peers);
}

std::unique_ptr<Segment> NcclTransport::allocate(std::size_t bytes, Deadline deadline) {
  health_.throw_if_failed();
  const std::uint64_t number = ++segments_;
  const PendingOp op{.operation = "allocate", .number = number};
  const std::vector<std::string> sizes = gather_sizes(std::to_string(bytes), op, deadline);
  for (int peer = 0; peer < world_size(); ++peer)
    if (const std::string& theirs = sizes[static_cast<std::size_t>(peer)]; theirs != std::to_string(bytes)) {
      const std::string text = fmt::format(
          "ranks are out of sync: rank {} allocates {} bytes, but rank {} allocates {}; allocate the same sizes in the "
          "same order on all ranks",
          rank(), bytes, peer, theirs);
      health_.fail(op, [&](GroupFailure& failure) { failure.throw_desync(peer, text, op); });
      health_.throw_if_failed();
    }

  const std::size_t room = std::max<std::size_t>(bytes, 1);
  kernels::Buffer memory = options_.device.allocate(room);
  std::byte* const data = memory.data();
  reduction_stream_.stream().enqueue_zero(data, room);
  reduction_stream_.stream().synchronize(deadline);
  return std::make_unique<OwnSegment<kernels::Buffer>>(data, std::move(memory), bytes, number);
}

/// Every rank's size of allocation `op`. Fails the group and throws if a rank does not answer.
std::vector<std::string> NcclTransport::gather_sizes(const std::string& mine, const PendingOp& op, Deadline deadline) {
  const auto key_of = [&](std::uint64_t number, int of) { return fmt::format("{}/memory/{}/{}", prefix_, number, of); };
  options_.store.set(key_of(op.number, rank()), mine);
  std::vector<std::string> values(static_cast<std::size_t>(world_size()));
  std::vector<int> missing;
  for (int from = 0; from < world_size(); ++from)
    for (bool last = false; !last;) {
      const auto left = deadline.remaining();
      last = left <= kCheckInterval;
      try {
        values[static_cast<std::size_t>(from)] = options_.store.wait(
            key_of(op.number, from), Deadline::after(std::min<std::chrono::nanoseconds>(left, kCheckInterval)));
        break;
      } catch (const Timeout&) {
        if (propagation_.left_after(from))
          health_.fail(op, [&](GroupFailure& failure) { failure.throw_peer_left(from, op); });
        health_.throw_if_failed();
        if (last) missing.push_back(from);
      }
    }
  if (!missing.empty())
    health_.fail(op, [&](GroupFailure& failure) {
      failure.throw_timeout(missing, missing.front(), "has not reached it; look at its log, or raise the timeout", op);
    });
  health_.throw_if_failed();
  // Every rank has got here, so it has read the sizes of the allocation before.
  if (op.number > 1) options_.store.remove(key_of(op.number - 1, rank()));
  return values;
}

}  // namespace gradring::comm::nccl
