// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/in_process/in_process.h"

#include <fmt/format.h>

#include <utility>

#include "comm/transport/segment.h"
#include "comm/transports/mapped/control_block.h"
#include "comm/transports/mapped/mapped_transport.h"
#include "kernels/base/error.h"

namespace gradring::comm {
namespace {

class ThreadMemory final : public PeerMemory {
 public:
  ThreadMemory(std::shared_ptr<InProcessRendezvous> rendezvous, int rank)
      : rendezvous_(std::move(rendezvous)), rank_(rank) {}

  int rank() const override { return rank_; }
  int world_size() const override { return rendezvous_->world_size(); }
  std::byte* control_block(int rank) override { return rendezvous_->control_block(rank); }
  Part create(std::size_t bytes) override {
    Region memory = zeroed_memory(bytes);
    rendezvous_->publish(rank_, memory);
    return {.memory = std::move(memory)};
  }
  Region map(int peer, std::uint64_t, std::size_t) override { return rendezvous_->part(peer); }
  /// A thread does not die alone; one that throws leaves the group through its control block.
  bool gone(int) override { return false; }
  bool stopped(int) override { return false; }
  std::string describe(int) const override { return "a thread of this process"; }

 private:
  std::shared_ptr<InProcessRendezvous> rendezvous_;
  int rank_;
};

}  // namespace

InProcessRendezvous::InProcessRendezvous(int world_size) {
  check(world_size >= 1, [&] { return fmt::format("invalid world size {}: expected at least 1", world_size); });
  const auto ranks = static_cast<std::size_t>(world_size);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    blocks_.push_back(zeroed_memory(ControlBlock::bytes_for(world_size)));
    ControlBlock::create(blocks_.back().get(), world_size);
  }
  joined_.resize(ranks);
  parts_.resize(ranks);
}

void InProcessRendezvous::join(int rank) {
  check_rank(rank, world_size());
  const std::lock_guard lock(mutex_);
  check(!joined_[static_cast<std::size_t>(rank)],
        [&] { return fmt::format("rank {} has already joined: start each rank once", rank); });
  joined_[static_cast<std::size_t>(rank)] = true;
}

void InProcessRendezvous::publish(int rank, const PeerMemory::Region& part) {
  const std::lock_guard lock(mutex_);
  parts_[static_cast<std::size_t>(rank)] = part;
}

PeerMemory::Region InProcessRendezvous::part(int rank) const {
  const std::lock_guard lock(mutex_);
  return parts_[static_cast<std::size_t>(rank)].lock();
}

std::unique_ptr<Transport> make_in_process_transport(std::shared_ptr<InProcessRendezvous> rendezvous, int rank) {
  rendezvous->join(rank);
  return std::make_unique<MappedTransport>(std::make_unique<ThreadMemory>(std::move(rendezvous), rank));
}

}  // namespace gradring::comm
