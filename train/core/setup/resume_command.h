// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/launch/workers/worker_environment.h"

namespace gradring::train {

/// How a run was started, as far as its processes tell.
struct StartedBy {
  std::vector<std::string> own{};     ///< arguments of this process: "gradring", "train", "--epochs", "3"
  std::vector<std::string> parent{};  ///< arguments of the process that started it
  bool launched = false;              ///< this process is one rank of several, or has a launcher
  int world_size = 1;
  int nodes = 1;
  Variables environment{};  ///< all of it
};

/// An option of `gradring train` with its dashes, and its value; without one, the option is left out.
struct OptionWord {
  std::string name;
  std::optional<std::string> value{};
};

/// The arguments of this process, the program first; empty without /proc.
std::vector<std::string> own_command();

/// How this process was started.
StartedBy started_by(const WorkerEnvironment& environment);

/// The shell command that resumes a run: the command that started it, launcher included, with its run directory,
/// --resume auto and the variables that set options. A comment names what is missing: ranks whose launcher is not their
/// parent process (srun, started by hand), further nodes.
///
///   gradring launch --nproc-per-node 2 train --epochs 3 --run-dir runs/digits-convnet-20260102-030405 --resume auto
///
/// `changes` are options with other values than before: to train longer, {"--epochs", "6"}.
std::string resume_command(const StartedBy& started_by, const std::filesystem::path& run_dir,
                           const std::vector<OptionWord>& changes = {});

/// The shell command that starts the run again in another run directory, with the same options but `changes`.
std::string restart_command(const StartedBy& started_by, const std::filesystem::path& run_dir,
                            const std::vector<OptionWord>& changes);

/// The same without changes to its options: the shell command that started the run.
std::string start_command(const StartedBy& started_by);

}  // namespace gradring::train
