// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>

#include "comm/process_group.h"
#include "train/launch/worker_environment.h"

namespace gradring::train {

/// The ranks of this run. They find each other in the folder that their launcher lends (GRADRING_STORE), or else in a
/// MeetingPlace; a world of one finds itself. Blocks until all have come. No TCP port is opened.
///
/// Errors    EnvironmentError for ranks on several machines; comm::Timeout that names the missing ranks; comm::PeerLost.
std::unique_ptr<comm::ProcessGroup> make_group(const WorkerEnvironment& place, std::chrono::milliseconds timeout);

}  // namespace gradring::train
