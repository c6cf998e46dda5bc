// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/transport/nccl/adder.h"
#include "comm/transport/nccl/introduction.h"
#include "comm/transport/nccl/nccl_memory.h"
#include "comm/transport/nccl/watchdog.h"

namespace gradring::comm::nccl {

/// The transport of ranks that have a GPU each. A step is one group of ncclSend and ncclRecv on the stream that was given
/// to submit; what is to be added is received into scratch, and added by our own kernel.
///
/// Overlap   A long slice is cut into pieces (Cut), each a group of its own, and the adds run on a second stream, ordered by
///           events. So the sum of one piece is taken while the next piece travels; and the next step's first piece, which
///           needs the first sum alone, travels while the last is taken. The streams are joined at the collective's end.
/// Capture   once all memory is there and the ranks were connected by running it once, submit enqueues groups, kernels,
///           records and waits between streams alone: all of it can be captured into a graph. A graph must be gone before
///           the transport, and is enqueued through replay.
/// Faults    Watchdog. The messages name the last step of the schedule that was posted: the host runs ahead of the stream.
class NcclTransport final : public Transport, public VendorAllReduce {
 public:
  NcclTransport(const NcclOptions& options, const Surroundings& surroundings,
                std::shared_ptr<Communicator> communicator, const std::vector<Introduction>& ranks,
                const std::string& prefix);
  /// Waits, within the timeout, until its collectives are done, and tells the others that this rank has left.
  ~NcclTransport() override;

  int rank() const override { return options_.rank; }
  int world_size() const override { return options_.world_size; }
  std::size_t chunk_bytes() const override { return cut_.chunk_bytes; }
  VendorAllReduce* vendor_all_reduce() override { return this; }
  std::unique_ptr<Segment> allocate(std::size_t bytes, Deadline deadline) override;
  void submit(kernels::Stream& stream, std::function<void()> collective) override;
  void enqueue(const Step& step) override;
  Progress poll() override;
  void wait(Deadline deadline) override;
  void replay(kernels::Stream& stream, const std::function<void()>& launch) override;
  void refuse_if_broken() const override { health_.refuse_if_broken(); }
  void all_reduce(const SegmentRange& range, std::uint64_t number, kernels::Stream& stream) override;

 private:
  /// A piece of a move, and where the bytes are.
  struct Transfer {
    Move::Kind kind = Move::Kind::send;
    int peer = 0;
    std::byte* data = nullptr;
    std::size_t elements = 0;
    kernels::DType dtype = kernels::DType::f32;
  };

  std::size_t pieces_of(const Step& step, const Move& move) const;
  std::vector<Transfer> transfers_of(const Step& step, std::size_t piece) const;
  void run(std::vector<Transfer> transfers);
  void make_group(const std::function<ncclResult_t(ncclComm_t)>& calls);
  void note(const Errand& errand, const std::string& what, const std::vector<int>& peers);
  std::vector<std::string> meet(const std::string& topic, const std::string& mine, const Errand& errand,
                                Deadline deadline);

  NcclOptions options_;
  Cut cut_;
  std::string prefix_;
  std::shared_ptr<Communicator> communicator_;
  NewsBoard board_;
  GroupHealth health_;
  Adder adder_;
  kernels::Buffer token_;  // what an empty message carries: two bytes, one to send and one to receive
  std::uint64_t segments_ = 0;

  kernels::Stream* stream_ = nullptr;  // that carries a collective right now
  bool captured_ = false;              // whether into a graph
  Errand errand_;
  Watchdog watchdog_;  // last: its thread uses the above
};

}  // namespace gradring::comm::nccl
