// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/signal_echoes.h"

namespace gradring::train {
namespace {

/// The last agent may have it so much later than the first: more than any network takes, less than a person who means it twice.
constexpr auto kSpread = std::chrono::seconds(2);

}  // namespace

bool SignalEchoes::is_new(int number, int node, Clock::time_point now) {
  const auto found = latest_.find(number);
  const bool recent = found != latest_.end() && now - found->second.when < kSpread;
  if (recent && found->second.nodes.insert(node).second) return false;
  latest_[number] = {now, {node}};
  return true;
}

}  // namespace gradring::train
