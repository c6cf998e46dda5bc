// SPDX-License-Identifier: Apache-2.0
#include "train/cli/train_command.h"

#include <fmt/format.h>

#include <vector>

#include "kernels/runtime/write_all.h"
#include "train/cli/exit_code.h"
#include "train/cli/parse_train.h"
#include "train/cli/resume_command.h"
#include "train/cli/standard_output.h"
#include "train/cli/train_rank.h"
#include "train/config/usage_error.h"
#include "train/config/variables.h"
#include "train/launch/error_file.h"
#include "train/launch/launcher.h"
#include "train/setup/signal_requests.h"

namespace gradring::train {
namespace {

int spawn(const TrainConfig& config, std::span<const std::string> args) {
  std::vector<std::string> command = {"train"};
  command.insert(command.end(), args.begin(), args.end());
  command.insert(command.end(), {"--nprocs", "1"});
  return spawn_ranks(static_cast<int>(config.nprocs), command);
}

/// Who asked this process to stop is told by its exit code that it did so in order; that is no failure of its own.
/// Rank 0 prints the command that resumes the run.
int train_as_rank(const TrainConfig& config, const WorkerEnvironment& place, RankKeeps& keeps) {
  SignalRequests requests(fmt::format("rank {} of {}", place.rank, place.world_size));
  try {
    train_rank(config, place, requests, keeps);
    return kOk;
  } catch (const Preempted& stopped) {
    if (place.rank == 0)
      print_to_stderr(fmt::format("gradring train: {}; to resume:\n  {}\n", stopped.what(),
                                  resume_command(started_by(place), keeps.run_dir)));
    return requests.exit_code();
  }
}

int train(std::span<const std::string> args, RankKeeps& keeps) {
  const ParsedTrain parsed = parse_train(args);
  if (parsed.help) {
    fmt::print("{}", train_help());
    return kOk;
  }
  const auto place = WorkerEnvironment::from_environment(system_variable);
  const ResolvedConfig resolved = resolve(parsed.options, system_variables(), parsed.config_file);
  const TrainConfig& config = resolved.config;
  if (parsed.print_config) {
    if (place.rank == 0) fmt::print("{}", print_config(resolved));
    return kOk;
  }
  if (config.nprocs > 1 && system_variable("RANK"))
    throw UsageError("--nprocs spawns ranks, but this process is a rank already (RANK is set): leave --nprocs out");
  if (parsed.dry_run)
    dry_run(config, place);
  else if (config.nprocs > 1)
    return spawn(config, args);
  else
    return train_as_rank(config, place, keeps);
  return kOk;
}

}  // namespace

int train_main(std::span<const std::string> args) {
  RankKeeps keeps;  // goes after what is said below
  try {
    return train(args, keeps);
  } catch (const std::exception& error) {
    if (is_output_failure(error)) throw;
    // A launcher that reads error files shows the message itself, once, at the end.
    const std::string message = message_of(error);
    const std::string error_file = system_variable("TORCHELASTIC_ERROR_FILE").value_or("");
    if (!write_error_file(error_file, message)) print_to_stderr(fmt::format("gradring train: {}\n", message));
    return exit_code_of(error);
  }
}

}  // namespace gradring::train
