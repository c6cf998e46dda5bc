// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/launch/worker_environment.h"

namespace gradring::train {

/// How a run was started, as far as it can be read from the processes that run it.
struct StartedBy {
  std::vector<std::string> own{};     ///< the words of this process: "gradring", "train", "--epochs", "3"
  std::vector<std::string> parent{};  ///< those of the process that started it
  bool launched = false;              ///< this process is one rank of several, or has a launcher
  int world_size = 1;
  int nodes = 1;
  Variables environment{};  ///< all of it
};

/// That of this process.
StartedBy started_by(const WorkerEnvironment& place);

/// What a user types to resume a run: the command that started it, launcher included, with its run directory and --resume
/// auto, and the variables that set options; quoted for a POSIX shell. A comment says where that is not all: ranks whose
/// launcher is not their parent process (srun, started by hand), further nodes.
///
///   gradring launch --nproc-per-node 2 train --epochs 3 --run-dir runs/digits-convnet-20260102-030405 --resume auto
std::string resume_command(const StartedBy& started_by, const std::filesystem::path& run_dir);

}  // namespace gradring::train
