// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/launch_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "kernels/runtime/error.h"
#include "train/launch/attempts.h"
#include "train/launch/nodes/follower.h"
#include "train/launch/nodes/identity.h"
#include "train/launch/nodes/leader.h"
#include "train/launch/nodes/meeting.h"

namespace gradring::train {
namespace {

/// Until the person hears what is being waited for; and from then on, until it is looked again whether this node can lead.
constexpr auto kFirstLook = std::chrono::seconds(2);
constexpr auto kBetweenLooks = std::chrono::seconds(30);

int lead(const LaunchOptions& options, Doorway doorway, const Say& say) {
  WorkerGroup local(options);
  Leader leader(options, std::move(doorway), local, say);
  const int code = run_attempts(options, leader, say);
  leader.finish(code);
  return code;
}

int follow(const LaunchOptions& options, NodeLink link, const Say& say) {
  WorkerGroup local(options);
  return Follower(options, std::move(link), local, say).to_the_end();
}

/// The first who can listen at the endpoint leads.
std::optional<Doorway> open_if_free(const LaunchOptions& options) try {
  return Doorway(options.master_addr, options.master_port, identity_of(options, NodePart::leads));
} catch (const DeviceError&) {
  return std::nullopt;
}

}  // namespace

int launch_nodes(const LaunchOptions& options, const Say& say) {
  const bool dynamic = options.rendezvous == Rendezvous::dynamic;
  if (!dynamic && options.node_rank == 0)
    return lead(options, Doorway(options.master_addr, options.master_port, identity_of(options, NodePart::leads)), say);

  // There is nothing to clear up yet: Ctrl-C ends this process as it ends any program.
  const auto self = identity_of(options, NodePart::follows);
  const std::string leader = fmt::format("the leading node at {}:{}", options.master_addr, options.master_port);
  const auto deadline = Deadline::after(options.join_timeout);
  std::string tried;
  for (bool said = false; !deadline.passed(); said = true) {
    if (auto doorway = dynamic ? open_if_free(options) : std::nullopt) return lead(options, std::move(*doorway), say);
    if (said) say("waiting for " + leader);
    const auto next_look = std::min<std::chrono::nanoseconds>(deadline.remaining(), said ? kBetweenLooks : kFirstLook);
    auto link = dial_leader(options.master_addr, options.master_port, self, Deadline::after(next_look), tried);
    if (link) return follow(options, std::move(*link), say);
  }
  throw DeviceError(fmt::format("cannot reach {}, tried last:{}", leader, tried));
}

}  // namespace gradring::train
