// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/transport/nccl/gather.h"
#include "comm/transport/nccl/nccl_transport.h"
#include "kernels/runtime/error.h"

namespace gradring::comm::nccl {
namespace {

const char* to_text(bool value) { return value ? "yes" : "no"; }

bool all_yes(const std::vector<std::string>& answers) {
  return std::ranges::all_of(answers, [](const std::string& answer) { return answer == "yes"; });
}

}  // namespace

// An allocation gathers three values from all ranks: the size, whether ncclMemAlloc succeeded, and whether the
// registration succeeded. If one rank fails, all use plain device memory: NCCL needs the same kind on both ends.
std::unique_ptr<Segment> NcclTransport::allocate(std::size_t bytes, Deadline deadline) {
  health_.throw_if_failed();
  const std::uint64_t number = ++segments_;
  const PendingOp op{.operation = "allocate", .number = number};
  const std::string topic = fmt::format("memory/{}", number);

  const std::vector<std::string> sizes = gather_values(topic + "/bytes", std::to_string(bytes), op, deadline);
  for (int peer = 0; peer < world_size(); ++peer)
    if (const std::string& theirs = sizes[static_cast<std::size_t>(peer)]; theirs != std::to_string(bytes)) {
      const std::string text = fmt::format(
          "ranks are out of sync: rank {} allocates {} bytes, but rank {} allocates {}; allocate the same sizes in the "
          "same order on all ranks",
          rank(), bytes, peer, theirs);
      health_.fail(op, [&](GroupFailure& failure) { failure.throw_desync(peer, text, op); });
      health_.throw_if_failed();
    }

  options_.make_current();
  const std::size_t room = std::max<std::size_t>(bytes, 1);
  NcclMemory memory(communicator_, room);
  bool registered = all_yes(gather_values(topic + "/there", to_text(static_cast<bool>(memory)), op, deadline));
  if (registered) {
    const bool mine = memory.register_it();
    registered = all_yes(gather_values(topic + "/registered", to_text(mine), op, deadline));
  }
  if (!registered) memory = NcclMemory();
  auto segment = registered ? std::make_unique<NcclSegment>(std::move(memory), bytes, number)
                            : std::make_unique<NcclSegment>(options_.device.allocate(room), bytes, number);
  reduction_stream_.stream().enqueue_zero(segment->data(), room);
  reduction_stream_.stream().synchronize(deadline);
  return segment;
}

/// Every rank's value of `topic`. Fails the group and throws if a rank does not answer.
std::vector<std::string> NcclTransport::gather_values(const std::string& topic, const std::string& mine,
                                                      const PendingOp& op, Deadline deadline) {
  const GatherResult gathered =
      gather(options_.store, prefix_ + "/" + topic, rank(), world_size(), mine, deadline, [&](int missing) {
        if (propagation_.left_after(missing))
          health_.fail(op, [&](GroupFailure& failure) { failure.throw_peer_left(missing, op); });
        health_.throw_if_failed();
      });
  if (!gathered.missing.empty())
    health_.fail(op, [&](GroupFailure& failure) {
      failure.throw_timeout(gathered.missing, gathered.missing.front(),
                            "has not reached it; look at its log, or raise the timeout", op);
    });
  health_.throw_if_failed();
  return gathered.values;
}

}  // namespace gradring::comm::nccl
