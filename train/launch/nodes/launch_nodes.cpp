// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/launch_nodes.h"

#include "train/launch/attempts.h"
#include "train/launch/nodes/follower.h"
#include "train/launch/nodes/identity.h"
#include "train/launch/nodes/leader.h"
#include "train/launch/nodes/meeting.h"

namespace gradring::train {

int launch_nodes(const LaunchOptions& options, const Say& say) {
  if (options.node_rank == 0) {
    WorkerGroup local(options);
    Leader leader(options, local, say);
    const int code = run_attempts(options, leader, say);
    leader.finish(code);
    return code;
  }
  // Before there is anything to clear up: Ctrl-C ends it as it ends any program.
  NodeLink link = dial_leader(options.master_addr, options.master_port, identity_of(options),
                              Deadline::after(options.join_timeout));
  WorkerGroup local(options);
  return Follower(options, std::move(link), local, say).to_the_end();
}

}  // namespace gradring::train
