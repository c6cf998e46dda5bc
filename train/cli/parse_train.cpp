// SPDX-License-Identifier: Apache-2.0
#include "train/cli/parse_train.h"

#include <fmt/format.h>

#include "train/cli/command_line.h"

namespace gradring::train {
namespace {

constexpr const char* kHead =
    "gradring train: train a model on one or many ranks\n\n"
    "  gradring train [options]                          one rank, or as many as --nprocs says\n"
    "  gradring launch --nproc-per-node N train [options]\n\n"
    "Options; in brackets the default:\n";

constexpr const char* kFoot =
    "\nEvery option but the last four can also be set by a variable (--batch-size: GRADRING_BATCH_SIZE) or in the "
    "--config\n"
    "file (batch-size = 64). The command line wins, then the environment, then the file.\n"
    "\nA run directory holds config.resolved.toml (--config takes it back; after a resume with other options also\n"
    "config.resolved-2.toml, ...), metrics.jsonl, summary.json, checkpoints/ and logs/. One run at a time may use it.\n"
    "GRADRING_CPU_LEVEL selects a lower instruction-set level for the CPU: x86-64-v2, x86-64-v3, x86-64-v4.\n"
    "\nExit codes: 0 ok; 1 training failed, or its last checkpoint could not be saved (a full disk, too); 2 usage;\n"
    "3 this machine: no such device, or a full disk where metrics, logs or standard output go; 4 bad data or\n"
    "checkpoint; 5 diverged; 130 Ctrl-C; 143 stopped by SIGTERM, SIGHUP or SIGUSR1 after a checkpoint;\n"
    "161 a rank was lost; 162 a rank was late or never came; 163 the ranks differ.\n"
    "\nA reader of standard output that goes away (| head) does not stop training: stderr and the log say so.\n"
    "\nExamples:\n"
    "  gradring train                                    the embedded digits\n"
    "  gradring train --dataset mnist --data-dir DIR --nprocs 2\n"
    "  gradring launch --nproc-per-node 2 train --dataset mnist --data-dir DIR --epochs 2\n";

/// " [64]", a string without its quotes; nothing for an empty one and for flags.
std::string shown_default(const Option& option) {
  std::string value = option.show(TrainConfig());
  if (value.starts_with('"')) value = value.substr(1, value.size() - 2);
  return value.empty() || option.is_flag() ? "" : " [" + value + "]";
}

/// `text` behind, or in the place of, what was typed before.
void take(const Option& option, std::string_view text, std::string& typed) {
  const bool joins = option.separator != 0 && !typed.empty();
  typed = joins ? typed + option.separator + std::string(text) : std::string(text);
}

/// What `gradring train` understands, filling `parsed`.
CommandLine train_command_line(ParsedTrain& parsed) {
  CommandLine line{.command = "gradring train", .options = config_options(parsed)};
  line.options.push_back({.name = "print-config",
                          .help = "show every option, its value and where it came from, and stop",
                          .read = set_switch("print-config", parsed.print_config)});
  line.options.push_back({.name = "dry-run",
                          .help = "check options, device and data, and stop before training",
                          .read = set_switch("dry-run", parsed.dry_run)});
  return line;
}

}  // namespace

std::vector<CommandOption> config_options(ParsedTrain& parsed) {
  std::vector<CommandOption> options;
  for (const Option& option : train_options())
    options.push_back(
        {.name = option.name,
         .value = option.value,
         .help = option.help + shown_default(option),
         .read = [&parsed, &option](std::string_view text) { take(option, text, parsed.options[option.name]); }});
  options.push_back({.name = "config",
                     .value = "F.toml",
                     .help = "read options from this file",
                     .read = [&parsed](std::string_view text) { parsed.config_file = std::string(text); }});
  return options;
}

ParsedTrain parse_train(std::span<const std::string> args) {
  ParsedTrain parsed;
  parsed.help = read_command_line(train_command_line(parsed), args).help;
  return parsed;
}

std::string train_help() {
  ParsedTrain unused;
  return kHead + help_of(train_command_line(unused).options) + kFoot;
}

}  // namespace gradring::train
