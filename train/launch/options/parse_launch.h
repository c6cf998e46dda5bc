// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>

#include "train/launch/workers/launch_options.h"
#include "train/launch/workers/worker_environment.h"
#include "train/options/command_line.h"

namespace gradring::train {

/// What the parser needs to know of the machine and the environment.
struct LaunchWorld {
  VariableLookup lookup;                         ///< for PET_*, between command line and defaults
  int cores = 1;                                 ///< --nproc-per-node cpu
  int gpus = 0;                                  ///< --nproc-per-node gpu
  std::string own_program;                       ///< path of this program, which runs `train ...`
  std::function<std::string()> random_run_id{};  ///< for --standalone
};

struct ParsedLaunch {
  LaunchOptions options;
  bool help = false;  ///< print launch_help() and stop
};

/// Parses what follows `gradring launch`: options, which are torchrun's and some more, then `train ...`, which this
/// same binary runs, `script.py ...`, or `-- program arguments...`. PET_<NAME> in the environment stands in for an
/// option.
///
/// Errors    InvalidArgument: an unknown option (names the nearest), a value missing or not understood, options that
///           contradict each other, no program.
ParsedLaunch parse_launch(std::span<const std::string> args, const LaunchWorld& world);

/// The syntax of `gradring launch`; its readers must not be called.
CommandLine launch_command_line();

/// The text of `gradring launch --help`.
std::string launch_help();

}  // namespace gradring::train
