// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/nccl/nccl_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/collectives/partition.h"
#include "comm/transport/check_step.h"
#include "kernels/runtime/error.h"

namespace gradring::comm::nccl {
namespace {

ncclDataType_t type_of(kernels::DType dtype) {
  switch (dtype) {
    case kernels::DType::f32: return ncclFloat32;
    case kernels::DType::f16: return ncclFloat16;
    case kernels::DType::bf16: return ncclBfloat16;
    case kernels::DType::i32: return ncclInt32;
    case kernels::DType::i64: return ncclInt64;
    case kernels::DType::u8: break;
  }
  return ncclUint8;
}

std::uint64_t number_of(const Segment* segment) {
  return segment ? static_cast<const NcclSegment*>(segment)->number() : 0;
}

/// "all_reduce 17 of 100 f32 from element 0 of segment 1"
std::string describe(std::string_view operation, std::uint64_t number, const SegmentRange& range) {
  return fmt::format("{} {} of {} {} from element {} of segment {}", operation, number, range.slice.elements,
                     name_of(range.dtype), range.slice.offset, number_of(range.segment));
}

PeerProcesses watched_processes(const std::vector<Introduction>& ranks, int rank) {
  const Introduction& mine = ranks[static_cast<std::size_t>(rank)];
  PeerProcesses processes;
  for (const Introduction& theirs : ranks) {
    const bool reachable = theirs.host == mine.host && theirs.pid != mine.pid;
    processes.push_back(reachable ? std::make_unique<ProcessHandle>(theirs.pid) : nullptr);
  }
  return processes;
}

GroupFailure::Describe describe_by(const std::vector<Introduction>& ranks) {
  return [ranks](int peer) { return ranks[static_cast<std::size_t>(peer)].process; };
}

}  // namespace

NcclTransport::NcclTransport(const NcclOptions& options, const Surroundings& surroundings,
                             std::shared_ptr<Communicator> communicator, const std::vector<Introduction>& ranks,
                             const std::string& prefix)
    : options_(options),
      cut_(surroundings.cut),
      prefix_(prefix),
      communicator_(std::move(communicator)),
      board_(options.store, prefix, options.rank),
      health_(options.rank, describe_by(ranks), board_, *communicator_, surroundings),
      adder_(options.device, options.kernels.accumulate, cut_.most_bytes),
      token_(options.device.allocate(2)),
      watchdog_({.rank = options.rank, .world_size = options.world_size, .timeout = options.timeout}, options.device,
                health_, board_, *communicator_, watched_processes(ranks, options.rank)) {}

NcclTransport::~NcclTransport() {
  watchdog_.drain(Deadline::after(options_.timeout));
  if (!health_.broken()) board_.leave(watchdog_.begun());
  health_.finish(options_.timeout);
}

void NcclTransport::submit(kernels::Stream& stream, std::function<void()> collective) {
  health_.refuse_if_broken();
  stream_ = &stream;
  captured_ = options_.is_captured(stream);
  if (!captured_) watchdog_.begin(stream, "collective");
  try {
    collective();
    adder_.join(stream);
    if (!captured_) watchdog_.end(stream);
  } catch (...) {
    if (!captured_) watchdog_.end(stream);
    stream_ = nullptr;
    throw;
  }
  stream_ = nullptr;
}

void NcclTransport::replay(kernels::Stream& stream, const std::function<void()>& launch) {
  health_.refuse_if_broken();
  watchdog_.begin(stream, "graph");
  launch();
  watchdog_.end(stream);
}

Progress NcclTransport::poll() {
  health_.refuse_if_broken();
  return Progress::done;
}

void NcclTransport::wait(Deadline) { health_.refuse_if_broken(); }

void NcclTransport::enqueue(const Step& step) {
  health_.refuse_if_broken();
  check_step(step, *this);
  check(stream_ != nullptr, "a step outside of submit: NCCL moves bytes in the order of a stream");
  std::vector<int> peers;
  std::size_t pieces = 0;
  for (const Move& move : step.moves) {
    peers.push_back(move.peer);
    pieces = std::max(pieces, pieces_of(step, move));
  }
  note({.operation = step.operation, .number = step.collective, .step = step.index},
       describe(step.operation, step.collective, step.range), peers);
  for (std::size_t piece = 0; piece < pieces; ++piece) run(transfers_of(step, piece));
}

/// Sender and receiver cut alike: it depends on the move's length alone. What has no elements is not moved, unless nothing
/// in the step has any: then it is the message that counts.
std::size_t NcclTransport::pieces_of(const Step& step, const Move& move) const {
  if (!step.range.segment) return 1;
  if (move.slice.elements == 0) return 0;
  const std::size_t bytes = move.slice.elements * size_of(step.range.dtype);
  if (bytes < 2 * cut_.least_bytes) return 1;
  return std::max<std::size_t>(2, chunk_count(bytes, cut_.most_bytes));
}

std::vector<NcclTransport::Transfer> NcclTransport::transfers_of(const Step& step, std::size_t piece) const {
  const kernels::DType dtype = step.range.dtype;
  std::vector<Transfer> transfers;
  for (const Move& move : step.moves) {
    if (!step.range.segment) {
      std::byte* const byte = token_.data() + (gives(move) ? 0 : 1);
      transfers.push_back({move.kind, move.peer, byte, 1, kernels::DType::u8});
      continue;
    }
    const std::size_t pieces = pieces_of(step, move);
    if (piece >= pieces) continue;
    const Slice slice = shard_of(move.slice.elements, pieces, piece);
    std::byte* const data =
        step.range.segment->data() + (step.range.slice.offset + move.slice.offset + slice.offset) * size_of(dtype);
    transfers.push_back({move.kind, move.peer, data, slice.elements, dtype});
  }
  return transfers;
}

void NcclTransport::run(std::vector<Transfer> transfers) {
  for (const Transfer& transfer : transfers)
    adder_.wait_for(transfer.data, transfer.elements * size_of(transfer.dtype), *stream_);
  for (Transfer& transfer : transfers)
    if (transfer.kind == Move::Kind::receive_add)
      transfer.data = adder_.reserve(transfer.data, transfer.elements, transfer.dtype, *stream_);
  const Api& api = communicator_->api();
  const auto stream = static_cast<cudaStream_t>(stream_->native_handle());
  make_group([&](ncclComm_t comm) {
    for (const Transfer& transfer : transfers) {
      const auto& [kind, peer, data, elements, dtype] = transfer;
      const ncclResult_t result = kind == Move::Kind::send
                                      ? api.send(data, elements, type_of(dtype), peer, comm, stream)
                                      : api.recv(data, elements, type_of(dtype), peer, comm, stream);
      if (result != ncclSuccess && result != ncclInProgress) return result;
    }
    return ncclSuccess;
  });
  adder_.add_reserved(*stream_);
}

void NcclTransport::make_group(const std::function<ncclResult_t(ncclComm_t)>& calls) {
  errand_.since = Deadline::Clock::now();
  const ncclResult_t result = communicator_->group(calls, Deadline::after(options_.timeout));
  health_.refuse_if_broken();  // then the communicator may be gone, and the result says nothing
  if (result == ncclSuccess) return;
  health_.fail(errand_, [&](GroupFailure& failure) {
    if (result == ncclInProgress) failure.time_out({}, -1, "does not answer NCCL, which connects to it", errand_);
    failure.lose(options_.rank, fmt::format("failed in NCCL ({})", communicator_->api().get_error_string(result)),
                 errand_);
  });
  health_.refuse_if_broken();
}

void NcclTransport::all_reduce(const SegmentRange& range, std::uint64_t number, kernels::Stream& stream) {
  submit(stream, [&] {
    note({.operation = "all_reduce", .number = number}, describe("all_reduce", number, range) + " by NCCL", {});
    if (range.slice.elements == 0) return;
    std::byte* const data = range.segment->data() + range.slice.offset * size_of(range.dtype);
    make_group([&](ncclComm_t comm) {
      return communicator_->api().all_reduce(data, data, range.slice.elements, type_of(range.dtype), ncclSum, comm,
                                             static_cast<cudaStream_t>(stream.native_handle()));
    });
  });
}

void NcclTransport::note(const Errand& errand, const std::string& what, const std::vector<int>& peers) {
  errand_ = errand;
  if (!captured_) watchdog_.note(errand, what, peers);
}

}  // namespace gradring::comm::nccl
