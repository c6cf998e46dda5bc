// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>

#include "train/launch/launcher.h"
#include "train/launch/worker_environment.h"

namespace gradring::train {

/// What the parser must know of the world to fill in what the command line leaves open.
struct LaunchWorld {
  VariableLookup lookup;                         ///< for PET_*, which stand between the command line and the defaults
  int cores = 1;                                 ///< --nproc-per-node auto
  std::string own_program;                       ///< what `train ...` runs
  std::function<std::string()> random_run_id{};  ///< for --standalone
  std::function<int()> free_tcp_port{};          ///< for --standalone
};

struct ParsedLaunch {
  LaunchOptions options;
  bool help = false;  ///< print launch_help() and stop
};

/// Reads what follows `gradring launch`: options in both spellings (--nproc-per-node, --nproc_per_node; `--name value`
/// or `--name=value`), then `train ...`, which this same binary runs, or `-- program arguments...`.
///
/// Errors    InvalidArgument: an unknown option (names the nearest), a value missing or not understood, no program, or
///           what this launcher cannot do yet (several nodes, restarts).
ParsedLaunch parse_launch(std::span<const std::string> args, const LaunchWorld& world);

/// The text of `gradring launch --help`, made from the table that the parser uses.
std::string launch_help();

}  // namespace gradring::train
