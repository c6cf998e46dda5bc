// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/launch_nodes.h"

#include <optional>

#include "kernels/runtime/error.h"
#include "train/launch/attempts.h"
#include "train/launch/nodes/follower.h"
#include "train/launch/nodes/identity.h"
#include "train/launch/nodes/leader.h"
#include "train/launch/nodes/meeting.h"

namespace gradring::train {
namespace {

int lead(const LaunchOptions& options, Doorway doorway, const Say& say) {
  WorkerGroup local(options);
  Leader leader(options, std::move(doorway), local, say);
  const int code = run_attempts(options, leader, say);
  leader.finish(code);
  return code;
}

int follow(const LaunchOptions& options, const Say& say) {
  // Before there is anything to clear up: Ctrl-C ends it as it ends any program.
  NodeLink link = dial_leader(options.master_addr, options.master_port, identity_of(options, NodePart::follows),
                              Deadline::after(options.join_timeout));
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
  if (options.rendezvous == Rendezvous::dynamic) {
    auto doorway = open_if_free(options);
    return doorway ? lead(options, std::move(*doorway), say) : follow(options, say);
  }
  if (options.node_rank > 0) return follow(options, say);
  return lead(options, Doorway(options.master_addr, options.master_port, identity_of(options, NodePart::leads)), say);
}

}  // namespace gradring::train
