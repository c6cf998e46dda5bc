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

/// How long the leader is looked for until the person hears of it; then until one who sits at its place and does not
/// prove himself is taken for a stranger; and from then on, until it is looked again whether this node can lead.
constexpr std::chrono::seconds kLooks[] = {std::chrono::seconds(2), std::chrono::seconds(3), std::chrono::seconds(30)};
constexpr std::size_t kLastLook = std::size(kLooks) - 1;

int lead(const LaunchOptions& options, Doorway doorway, Terminals& terminals, const Say& say) {
  WorkerGroup local(options, terminals);
  Leader leader(options, std::move(doorway), local, say);
  const int code = run_attempts(options, leader, say);
  leader.finish(code);
  return code;
}

int follow(const LaunchOptions& options, NodeLink link, Terminals& terminals, const Say& say) {
  WorkerGroup local(options, terminals);
  return Follower(options, std::move(link), local, say).to_the_end();
}

Doorway open_door(const LaunchOptions& options) {
  return Doorway(options.master_addr, options.master_port, identity_of(options, NodePart::leads));
}

/// The first who can listen at the endpoint leads. `patient`: who listens there already may yet prove to be the leader.
///
/// Errors    DoorTaken if not `patient`.
std::optional<Doorway> open_if_free(const LaunchOptions& options, bool patient) try {
  return open_door(options);
} catch (const DoorTaken&) {
  if (!patient) throw;
  return std::nullopt;
} catch (const DeviceError&) {  // no address of this host: it follows
  return std::nullopt;
}

}  // namespace

int launch_nodes(const LaunchOptions& options, Terminals& terminals, const Say& say) {
  const bool dynamic = options.rendezvous == Rendezvous::dynamic;
  if (!dynamic && options.node_rank == 0) return lead(options, open_door(options), terminals, say);

  // There is nothing to clear up yet: Ctrl-C ends this process as it ends any program.
  const auto self = identity_of(options, NodePart::follows);
  const std::string leader = "the leading node at " + endpoint_text(options.master_addr, options.master_port);
  const auto deadline = Deadline::after(options.join_timeout);
  std::string tried;
  for (std::size_t look = 0; !deadline.passed(); ++look) {
    if (auto doorway = dynamic ? open_if_free(options, look != kLastLook) : std::nullopt)
      return lead(options, std::move(*doorway), terminals, say);
    if (look == 1) say(fmt::format("waiting for {}, tried until now:{}", leader, tried));
    const auto patience = std::min<std::chrono::nanoseconds>(deadline.remaining(), kLooks[std::min(look, kLastLook)]);
    auto link = dial_leader(options.master_addr, options.master_port, self, Deadline::after(patience), tried);
    if (link) return follow(options, std::move(*link), terminals, say);
  }
  throw DeviceError(fmt::format("cannot reach {}, tried last:{}", leader, tried));
}

}  // namespace gradring::train
