// SPDX-License-Identifier: Apache-2.0
#include "train/app/commands/train_command.h"

#include <fmt/format.h>

#include "train/app/commands/commands.h"
#include "train/app/rank/rank_run.h"
#include "train/core/config/option_sources.h"
#include "train/core/config/options.h"
#include "train/core/config/presets.h"
#include "train/core/setup/named_output.h"
#include "train/core/setup/start.h"
#include "train/launch/launcher.h"
#include "train/options/exit_code.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/file_system.h"
#include "train/records/trace/trace_writer.h"
#include "train/view/runs/run_config.h"

namespace gradring::train {
namespace {

constexpr const char* kTrainNotes =
    "Every option above General can also be set by an environment variable (--batch-size: GRADRING_BATCH_SIZE) or in "
    "the --config file (batch-size = 64). The command line takes precedence over the environment, the environment over "
    "the file, and the file over the --preset; --no-FLAG, such as --no-reproducible, turns a flag off. A path may "
    "begin with ~/ in all of them. "
    "GRADRING_CPU_LEVEL selects a lower instruction-set level of the CPU: x86-64-v2, x86-64-v3, x86-64-v4.\n\n"
    "A run directory holds config.resolved.toml (input for --config; after a resume with other options also "
    "config.resolved-2.toml, ...), metrics.jsonl, summary.json, checkpoints/ and logs/. One run at a time may use it. "
    "If the reader of standard output exits (| head), training continues; stderr and the log report it.\n\n";

constexpr const char* kExamples =
    "Examples:\n"
    "  gradring train\n"
    "  gradring train --dataset mnist --data-dir DIR --nprocs 2\n"
    "  gradring launch --nproc-per-node 2 train --dataset mnist --data-dir DIR\n";

/// "--weights, --optimizer-state"
template <class Column>
std::string options_with(Column TrainOption::*column, Column value) {
  std::string names;
  for (const TrainOption& option : train_options())
    if (option.*column == value) names += (names.empty() ? "--" : ", --") + option.name;
  return names;
}

std::string resume_notes() {
  return fmt::format(
      "A resume takes the options that it is given: one that is not repeated has its default again, not the value of "
      "the run. A remark names those that changed, and the learning rate if that changes. --config "
      "RUN/config.resolved.toml repeats them all. Kept from the run in --run-dir: {}. Without effect, because the "
      "checkpoint holds what became of them: "
      "{}. If these do not fit the checkpoint, the resume is rejected: {}; within an epoch also: {}; with "
      "--reproducible, "
      "if they give other bits: {}. A cosine or one-cycle schedule spans all steps of the training, so more of them "
      "change the rate of every step.\n\n",
      options_with(&TrainOption::on_resume, OnResume::run), options_with(&TrainOption::on_resume, OnResume::checkpoint),
      options_with(&TrainOption::on_resume, OnResume::must_fit),
      options_with(&TrainOption::on_resume, OnResume::must_fit_within_epoch),
      options_with(&TrainOption::changes, Changes::rounding));
}

/// Appends `text` to what was typed before, or replaces it.
void take(const TrainOption& option, std::string_view text, std::string& typed) {
  const bool joins = option.separator != 0 && !typed.empty();
  typed = joins ? typed + option.separator + std::string(text) : std::string(text);
}

int run(Arguments args, KeptAlive& kept) {
  ParsedTrain parsed;
  if (!words_or_help(command_line(parsed), args)) return kOk;
  if (const auto preset = parsed.options.find("preset");
      preset != parsed.options.end() && preset->second == kListPresets) {
    print_shown(list_of_presets());
    return kOk;
  }
  auto environment = WorkerEnvironment::from_environment(system_variable);
  ResolvedConfig resolved = resolve(parsed.options, system_variables(), parsed.config_file);
  const TrainConfig& config = resolved.config;
  if (parsed.print_config) {
    if (environment.rank == 0) print_shown(print_config(resolved));
    return kOk;
  }
  PosixFileSystem files;
  take_saved_model(files, resolved.config);
  check_nprocs(config, environment);
  if (environment.rank == 0)
    check_output({.option = "--trace",
                  .path = config.trace,
                  .created = (std::filesystem::path(config.run_dir) / "").lexically_normal().parent_path(),
                  .is_ours = is_trace,
                  .advice = "name another file, or remove it"},
                 Replace::ours);
  if (!parsed.dry_run)
    return config.nprocs > 1 ? spawn("train", args, config) : RankRun(config, environment, kept).run();
  environment.world_size *= static_cast<int>(config.nprocs);
  environment.local_world_size *= static_cast<int>(config.nprocs);
  dry_run(config, environment);
  return kOk;
}

}  // namespace

const Command kTrainCommand{
    .name = "train", .help = "train a model on one or many ranks", .run = run, .describe = describe<ParsedTrain>};

std::vector<Option> config_options(ParsedTrain& parsed) {
  std::vector<Option> options;
  for (const TrainOption& option : train_options())
    options.push_back(
        {.name = option.name,
         .value = option.value,
         .help = option.help + shown_default(option),
         .read = [&parsed, &option](std::string_view text) { take(option, text, parsed.options[option.name]); },
         .group = option.group});
  options.push_back({.name = "config",
                     .value = "FILE.toml",
                     .help = "TOML file with values for the options above",
                     .read = [&parsed](std::string_view text) { parsed.config_file = std::string(text); },
                     .group = "General"});
  return options;
}

CommandLine command_line(ParsedTrain& parsed) {
  CommandLine line{.command = "gradring train",
                   .purpose = "data-parallel training of a model on one or many ranks",
                   .usage = {"gradring train [OPTIONS]", "gradring launch --nproc-per-node N train [OPTIONS]"},
                   .options = config_options(parsed),
                   .notes = std::string(kTrainNotes) + resume_notes() +
                            exit_codes_text({{0}, {1}, {2}, {3}, {4}, {5}, {130}, {131}, {143}, {161}, {162}, {163}}) +
                            "\n" + kExamples};
  line.options.push_back(switch_option("print-config", "list of all options with value and source, without training",
                                       parsed.print_config));
  line.options.push_back(switch_option(
      "dry-run", "check of options, device, dataset, model and memory, without training", parsed.dry_run));
  for (Option& option : std::span(line.options).last(2)) option.group = "General";
  return line;
}

void check_nprocs(const TrainConfig& config, const WorkerEnvironment& environment) {
  if (config.nprocs > 1 && environment.is_launched())
    throw UsageError(fmt::format(
        "--nprocs is {}, but this process is a rank already, rank {} of {}, started by {}: leave --nprocs out",
        config.nprocs, environment.rank, environment.world_size, environment.launcher));
}

int spawn(const char* name, Arguments args, const TrainConfig& config) {
  std::vector<std::string> command = {name};
  command.insert(command.end(), args.begin(), args.end());
  command.insert(command.end(), {"--nprocs", "1"});
  return spawn_ranks(static_cast<int>(config.nprocs), command);
}

ParsedTrain parse_train(Arguments args) {
  ParsedTrain parsed;
  parsed.help = read_command_line(command_line(parsed), args).help;
  return parsed;
}

}  // namespace gradring::train
