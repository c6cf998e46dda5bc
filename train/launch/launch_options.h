// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "train/launch/launcher.h"
#include "train/launch/worker_environment.h"

namespace gradring::train {

/// What the launcher must know about the machine to fill in defaults.
struct LaunchDefaults {
  VariableLookup lookup;       ///< for the PET_* variables, which stand between the command line and the defaults
  int cores = 1;               ///< --nproc-per-node auto
  std::string own_program;     ///< what `train ...` runs
  std::string (*unique_id)();  ///< the run id of --standalone
  int (*free_port)();          ///< the MASTER_PORT of --standalone
};

struct ParsedLaunch {
  LaunchOptions options;
  bool help = false;  ///< print launch_help() and stop
};

/// Reads what follows `gradring launch`: options in both spellings (--nproc-per-node, --nproc_per_node; `--name value`
/// or
/// `--name=value`), then `train ...`, which this same binary runs, or `-- program arguments...`.
///
/// Errors    InvalidArgument, without a source location: unknown option (names the nearest), value missing or not
///           understood, no program, or something that is not built yet (several nodes, restarts).
ParsedLaunch parse_launch(std::span<const std::string> args, const LaunchDefaults& defaults);

/// The text of `gradring launch --help`, made from the same table as the parser.
std::string launch_help();

}  // namespace gradring::train
