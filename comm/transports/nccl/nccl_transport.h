// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/transports/nccl/rank_info.h"
#include "comm/transports/nccl/reduction_stream.h"
#include "comm/transports/nccl/watchdog.h"

namespace gradring::comm::nccl {

/// The transport of ranks that have a GPU each. A step is one group of ncclSend and ncclRecv on the stream of submit.
/// Data to add is received into scratch and added by our own kernel, from at most four peers in a group: a step with more
/// peers has several groups (round_of).
///
/// Memory    Plain device memory on both ends of every transfer, segments and scratch alike: none is registered with
///           NCCL. NCCL's User Guide leaves a transfer between registered and other memory undefined; in NCCL 2.28 it
///           hangs, or sums a stale buffer.
/// Overlap   Long moves are split into slices (PipelineConfig), each with its own group. Adds run on a second stream,
///           ordered by events: one slice is added while the next is sent, and the first slice of the next step is sent
///           while the last one is added. The streams are joined at the end of the collective.
/// Capture   After one run that connects the ranks, submit enqueues only groups, kernels, records and waits, which can
///           be captured into a graph. A graph is enqueued through replay and must be destroyed before the transport.
/// Faults    Watchdog. Messages name the last posted step, because the host runs ahead of the stream.
class NcclTransport final : public Transport, public VendorAllReduce {
 public:
  NcclTransport(const NcclOptions& options, const Dependencies& dependencies,
                std::unique_ptr<Communicator> communicator, const std::vector<RankInfo>& ranks,
                const std::string& prefix);
  /// Waits, within the timeout, for its collectives, and tells the other ranks that this rank has left.
  ~NcclTransport() override;

  int rank() const override { return options_.rank; }
  int world_size() const override { return options_.world_size; }
  std::size_t chunk_bytes() const override { return pipeline_.chunk_bytes; }
  VendorAllReduce* vendor_all_reduce() override { return this; }
  std::unique_ptr<Segment> allocate(std::size_t bytes, Deadline deadline) override;
  void submit(kernels::Stream& stream, std::function<void()> collective) override;
  void enqueue(const Step& step) override;
  Progress poll() override;
  void wait(Deadline deadline) override;
  void replay(kernels::Stream& stream, const std::function<void()>& launch) override;
  void throw_if_failed() const override { health_.throw_if_failed(); }
  void share_failure(FirstFailure& first) override { health_.share(first); }
  void all_reduce(const SegmentRange& range, std::uint64_t number, kernels::Stream& stream) override;

 private:
  /// One slice of a move.
  struct Transfer {
    Move::Kind kind = Move::Kind::send;
    int peer = 0;
    std::byte* data = nullptr;
    std::size_t elements = 0;
    kernels::DType dtype = kernels::DType::f32;
  };

  void watch(kernels::Stream& stream, std::string_view operation, const std::function<void()>& enqueue);
  std::size_t slice_count(const Step& step, const Move& move) const;
  int round_of(int peer) const;
  std::map<int, std::vector<Transfer>> transfers_of(const Step& step, std::size_t index) const;
  void run(std::vector<Transfer> transfers);
  void run_group(const std::function<ncclResult_t(ncclComm_t)>& calls);
  void note(const PendingOp& op, const std::string& what, const std::vector<int>& peers);
  std::vector<std::string> gather_sizes(const std::string& mine, const PendingOp& op, Deadline deadline);

  NcclOptions options_;
  PipelineConfig pipeline_;
  std::string prefix_;
  std::unique_ptr<Communicator> communicator_;
  ErrorPropagation propagation_;
  GroupHealth health_;
  ReductionStream reduction_stream_;
  kernels::Buffer empty_message_;  // two bytes, one to send and one to receive
  std::uint64_t segments_ = 0;

  kernels::Stream* stream_ = nullptr;  // of the current submit
  bool captured_ = false;              // whether it is being captured into a graph
  PendingOp op_;
  Watchdog watchdog_;  // last: its thread uses the above
};

}  // namespace gradring::comm::nccl
