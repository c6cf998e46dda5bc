// SPDX-License-Identifier: Apache-2.0
#include "comm/host_channel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/collectives/collective.h"
#include "comm/collectives/schedules.h"
#include "kernels/base/error.h"

namespace gradring::comm {
namespace {

/// Holds all flags and counts of an epoch, and one byte of each of 65,536 ranks.
constexpr std::size_t kStagingBytes = 64 * 1024;

}  // namespace

HostChannel::HostChannel(std::unique_ptr<Transport> transport, std::chrono::nanoseconds timeout)
    : channel_(std::move(transport)),
      timeout_(timeout),
      staging_(channel_->allocate(std::max(kStagingBytes, static_cast<std::size_t>(channel_->world_size())),
                                  Deadline::after(timeout))) {}

void HostChannel::run(const Schedule& schedule, std::size_t bytes, int root) {
  const SegmentRange range{.segment = staging_.get(), .slice = {0, bytes}, .dtype = kernels::DType::u8};
  const Channel::Use use(channel_, "host calls of one group run in two threads at the same time: make them in one");
  Collective collective({.schedule = &schedule, .range = range, .root = root, .number = ++collectives_}, *channel_);
  drive(collective, *channel_, Deadline::after(timeout_));
}

std::vector<std::byte> HostChannel::all_gather(std::span<const std::byte> mine, std::string_view operation) {
  Schedule schedule = kDoublingAllGather;
  schedule.operation = operation;
  const auto world = static_cast<std::size_t>(channel_->world_size());
  const auto rank = static_cast<std::size_t>(channel_->rank());
  const std::size_t slot = staging_->size() / world;
  std::vector<std::byte> all(world * mine.size());
  for (std::size_t begin = 0; begin < mine.size(); begin += slot) {
    const std::size_t bytes = std::min(slot, mine.size() - begin);
    std::memcpy(staging_->data() + rank * bytes, mine.data() + begin, bytes);
    run(schedule, world * bytes);
    for (std::size_t from = 0; from < world; ++from)
      std::memcpy(all.data() + from * mine.size() + begin, staging_->data() + from * bytes, bytes);
  }
  return all;
}

/// The length is equal on all ranks.
void HostChannel::broadcast(std::span<std::byte> bytes, int root) {
  for (std::size_t begin = 0; begin < bytes.size(); begin += staging_->size()) {
    const std::size_t length = std::min(staging_->size(), bytes.size() - begin);
    if (channel_->rank() == root) std::memcpy(staging_->data(), bytes.data() + begin, length);
    run(kTreeBroadcast, length, root);
    std::memcpy(bytes.data() + begin, staging_->data(), length);
  }
}

std::string HostChannel::broadcast_text(const std::string& text, int root) {
  check(root >= 0 && root < channel_->world_size(), [&] {
    return fmt::format("broadcast has root rank {}: expected a rank of a world of {}", root, channel_->world_size());
  });
  std::uint64_t length = text.size();
  broadcast(std::as_writable_bytes(std::span(&length, 1)), root);
  std::string result = channel_->rank() == root ? text : std::string(length, '\0');
  broadcast(std::as_writable_bytes(std::span(result)), root);
  return result;
}

void HostChannel::barrier() { run(kDisseminationBarrier, 0); }

}  // namespace gradring::comm
