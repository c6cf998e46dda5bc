// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>

#include "train/launch/launcher.h"
#include "train/launch/worker_environment.h"

namespace gradring::train {

constexpr const char* kSeeLaunchHelp = "; see gradring launch --help";

/// What the parser must know of the world to fill in what the command line leaves open.
struct LaunchWorld {
  VariableLookup lookup;                         ///< for PET_*, which stand between the command line and the defaults
  int cores = 1;                                 ///< --nproc-per-node cpu
  int gpus = 0;                                  ///< --nproc-per-node gpu
  std::string own_program;                       ///< what `train ...` runs
  std::function<std::string()> random_run_id{};  ///< for --standalone
  std::function<int()> free_tcp_port{};          ///< for --standalone and c10d
};

struct ParsedLaunch {
  LaunchOptions options;
  bool help = false;  ///< print launch_help() and stop
};

/// Reads what follows `gradring launch`: options, which are torchrun's and some more, then `train ...`, which this same
/// binary runs, `script.py ...`, or `-- program arguments...`.
///
/// Errors    InvalidArgument: an unknown option (names the nearest), a value missing or not understood, options that
///           contradict each other, no program, or what this launcher cannot do yet (several nodes).
ParsedLaunch parse_launch(std::span<const std::string> args, const LaunchWorld& world);

/// The text of `gradring launch --help`, made from the tables that the parser uses.
std::string launch_help();

}  // namespace gradring::train
