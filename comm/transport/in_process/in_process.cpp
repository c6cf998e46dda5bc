// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/in_process/in_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "comm/transport/mapped/control_block.h"
#include "comm/transport/mapped/mapped_transport.h"
#include "kernels/runtime/error.h"

namespace gradring::comm {
namespace {

constexpr std::align_val_t kAlignment{64};

PeerMemory::Region zeroed(std::size_t bytes) {
  auto* data = static_cast<std::byte*>(::operator new(std::max<std::size_t>(bytes, 1), kAlignment, std::nothrow));
  if (!data) throw DeviceError(fmt::format("no {} bytes of memory left for a segment: use smaller buckets", bytes));
  std::memset(data, 0, bytes);
  return {data, [](std::byte* memory) { ::operator delete(memory, kAlignment); }};
}

class ThreadMemory final : public PeerMemory {
 public:
  ThreadMemory(std::shared_ptr<InProcessMeeting> meeting, int rank) : meeting_(std::move(meeting)), rank_(rank) {}

  int rank() const override { return rank_; }
  int world_size() const override { return meeting_->world_size(); }
  std::byte* control_block(int rank) override { return meeting_->control_block(rank); }
  Region create(std::size_t index, std::size_t bytes) override {
    Region share = zeroed(bytes);
    meeting_->leave_share(rank_, index, share);
    return share;
  }
  Region map(int peer, std::size_t index, std::size_t) override { return meeting_->share(peer, index); }
  /// A thread cannot die alone; one that throws leaves the group, and the control block says so.
  bool gone(int) override { return false; }
  bool stopped(int) override { return false; }
  std::string describe(int) const override { return "a thread of this process"; }

 private:
  std::shared_ptr<InProcessMeeting> meeting_;
  int rank_;
};

}  // namespace

InProcessMeeting::InProcessMeeting(int world_size) {
  check(world_size >= 1, "a group needs at least one rank");
  const auto ranks = static_cast<std::size_t>(world_size);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    blocks_.push_back(zeroed(ControlBlock::bytes_for(world_size)));
    ControlBlock::create(blocks_.back().get(), world_size);
  }
  arrived_.resize(ranks);
  shares_.resize(ranks);
}

void InProcessMeeting::arrive(int rank) {
  check(rank >= 0 && rank < world_size(), fmt::format("rank {} is outside a world of {}", rank, world_size()));
  const std::lock_guard lock(mutex_);
  check(!arrived_[static_cast<std::size_t>(rank)], fmt::format("rank {} joins a second time", rank));
  arrived_[static_cast<std::size_t>(rank)] = true;
}

void InProcessMeeting::leave_share(int rank, std::size_t index, const PeerMemory::Region& share) {
  const std::lock_guard lock(mutex_);
  auto& shares = shares_[static_cast<std::size_t>(rank)];
  if (shares.size() <= index) shares.resize(index + 1);
  shares[index] = share;
}

PeerMemory::Region InProcessMeeting::share(int rank, std::size_t index) const {
  const std::lock_guard lock(mutex_);
  return shares_[static_cast<std::size_t>(rank)][index].lock();
}

std::unique_ptr<Transport> make_in_process_transport(std::shared_ptr<InProcessMeeting> meeting, int rank) {
  meeting->arrive(rank);
  return std::make_unique<MappedTransport>(std::make_unique<ThreadMemory>(std::move(meeting), rank));
}

}  // namespace gradring::comm
