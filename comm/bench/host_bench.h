// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "comm/bench/collective_bench.h"

namespace gradring::comm::bench {

/// Collectives on host values, which run in the caller over the group's control channel.
enum class HostCollective : std::uint8_t {
  agreement,  ///< ProcessGroup::all_reduce_on_host: ranks agree on requests after a training step
  barrier,    ///< ProcessGroup::barrier_on_host
};

/// The flags of an agreement: a request to save, a request to stop (Trainer::agree_on_request).
inline constexpr std::size_t kAgreedFlags = 2;

/// Measures and checks host collectives. An agreement sums the payload's elements, which are i64; a barrier has no
/// payload.
class HostBench final : public CollectiveBench {
 public:
  HostBench(ProcessGroup& group, HostCollective collective) : group_(group), collective_(collective) {}

  std::optional<std::size_t> wrong_elements(const Payload& payload) override;
  std::vector<double> seconds(const Payload& payload, const Repetitions& repetitions) override;

 private:
  ProcessGroup& group_;
  HostCollective collective_;
};

}  // namespace gradring::comm::bench
