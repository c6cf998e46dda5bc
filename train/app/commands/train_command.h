// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/core/config/resolve.h"
#include "train/launch/workers/worker_environment.h"
#include "train/options/command_line.h"

namespace gradring::train {

/// The command line of `gradring train`, before the environment and the config file are read.
struct ParsedTrain {
  OptionTexts options;
  std::optional<std::string> config_file;
  bool print_config = false;
  bool dry_run = false;
  bool help = false;
};

/// The options that set a TrainConfig, and --config; `plan` has them too. They fill `parsed`, which must outlive them.
std::vector<Option> config_options(ParsedTrain& parsed);

/// Parses the arguments behind `gradring train`; the last one of a name wins.
///
/// Errors    as read_command_line.
ParsedTrain parse_train(std::span<const std::string> args);

/// The syntax of `gradring train`; its readers fill `parsed`.
CommandLine command_line(ParsedTrain& parsed);

/// Errors    UsageError if --nprocs asks this process to start ranks, but it is one.
void check_nprocs(const TrainConfig& config, const WorkerEnvironment& environment);

/// Starts the ranks of --nprocs, each as `gradring NAME ARGS`, and waits for them.
///
/// Returns   the exit code of the run.
int spawn(const char* name, std::span<const std::string> args, const TrainConfig& config);

}  // namespace gradring::train
