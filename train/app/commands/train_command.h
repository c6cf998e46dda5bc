// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/core/config/resolve.h"
#include "train/core/setup/compute.h"
#include "train/core/setup/rendezvous.h"
#include "train/core/trainer/trainer_world.h"
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

/// What a rank destroys only after it has reported its error: peers notice when its group disappears, and their errors
/// must not come first. The group's memory lies on the device, which therefore outlives it.
struct RankKeeps {
  Compute compute;
  std::vector<Compute> further;  ///< devices of --data-parallel besides the first
  Ranks ranks;
  std::filesystem::path run_dir;  ///< rank 0's, as a user types it; empty until it is open
};

/// Trains as one rank of the run that `environment` describes. Rank 0 creates the run directory after all ranks have
/// connected and agreed on the settings, and prints to stdout; every rank writes a log. `requests` is polled between
/// steps. If the run had already finished, rank 0 reports it and no file changes.
///
/// Errors    as Trainer, open_dataset, make_compute, make_group and RunOutput.
void train_rank(const TrainConfig& config, const WorkerEnvironment& environment, RunRequests& requests,
                RankKeeps& keeps);

/// Opens device and data as train_rank does, describes them on stdout, and returns: no other rank is needed, no file is
/// written.
void dry_run(const TrainConfig& config, const WorkerEnvironment& environment);

}  // namespace gradring::train
