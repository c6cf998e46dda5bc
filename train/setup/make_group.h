// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "comm/process_group.h"
#include "train/launch/worker_environment.h"

namespace gradring::train {

/// The ranks of this run. They find each other in the folder that their launcher lends (GRADRING_STORE), or else in a
/// MeetingPlace; a world of one finds itself. Blocks until all have come. `comm` is auto, shm or tcp; only tcp
/// opens ports, on 127.0.0.1, and closes them when all have come.
///
/// Errors    EnvironmentError for ranks on several machines; comm::Timeout that names the missing ranks; comm::PeerLost.
std::unique_ptr<comm::ProcessGroup> make_group(const WorkerEnvironment& place, std::chrono::milliseconds timeout,
                                               const std::string& comm = "auto");

}  // namespace gradring::train
