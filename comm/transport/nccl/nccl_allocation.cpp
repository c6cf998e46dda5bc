// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/transport/nccl/gather.h"
#include "comm/transport/nccl/nccl_transport.h"
#include "kernels/runtime/error.h"

namespace gradring::comm::nccl {
namespace {

const char* word_of(bool yes) { return yes ? "yes" : "no"; }

bool all_say_yes(const std::vector<std::string>& words) {
  return std::ranges::all_of(words, [](const std::string& word) { return word == "yes"; });
}

}  // namespace

// Ranks meet three times in an allocation: do all want the same, has NCCL memory for all, could all register it? If one
// cannot, all take plain memory of their device: NCCL must see the same kind on both ends.
std::unique_ptr<Segment> NcclTransport::allocate(std::size_t bytes, Deadline deadline) {
  health_.refuse_if_broken();
  const std::uint64_t number = ++segments_;
  const Errand errand{.operation = "allocate", .number = number};
  const std::string topic = fmt::format("memory/{}", number);

  const std::vector<std::string> sizes = meet(topic + "/bytes", std::to_string(bytes), errand, deadline);
  for (int peer = 0; peer < world_size(); ++peer)
    if (const std::string& theirs = sizes[static_cast<std::size_t>(peer)]; theirs != std::to_string(bytes)) {
      const std::string text = fmt::format(
          "rank {} allocates {} bytes where rank {} allocates {}: all ranks must allocate the same, in the same order",
          rank(), bytes, peer, theirs);
      health_.fail(errand, [&](GroupFailure& failure) { failure.report_desync(peer, text, errand); });
      health_.refuse_if_broken();
    }

  options_.make_current();
  const std::size_t room = std::max<std::size_t>(bytes, 1);
  NcclMemory memory(communicator_, room);
  bool registered = all_say_yes(meet(topic + "/there", word_of(static_cast<bool>(memory)), errand, deadline));
  if (registered) {
    const bool mine = memory.register_it();
    registered = all_say_yes(meet(topic + "/registered", word_of(mine), errand, deadline));
  }
  if (!registered) memory = NcclMemory();
  auto segment = registered ? std::make_unique<NcclSegment>(std::move(memory), bytes, number)
                            : std::make_unique<NcclSegment>(options_.device.allocate(room), bytes, number);
  adder_.stream().enqueue_zero(segment->data(), room);
  adder_.stream().synchronize(deadline);
  return segment;
}

/// What every rank says on that topic. Breaks the group and throws if one does not come.
std::vector<std::string> NcclTransport::meet(const std::string& topic, const std::string& mine, const Errand& errand,
                                             Deadline deadline) {
  const Gathering gathering =
      gather(options_.store, prefix_ + "/" + topic, rank(), world_size(), mine, deadline, [&](int missing) {
        if (board_.left_after(missing))
          health_.fail(errand, [&](GroupFailure& failure) { failure.miss(missing, errand); });
        health_.refuse_if_broken();
      });
  if (!gathering.missing.empty())
    health_.fail(errand, [&](GroupFailure& failure) {
      failure.time_out(gathering.missing, gathering.missing.front(), "has not come there", errand);
    });
  health_.refuse_if_broken();
  return gathering.values;
}

}  // namespace gradring::comm::nccl
