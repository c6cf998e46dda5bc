// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "train/cli/parse_train.h"

namespace gradring::train {
namespace {

constexpr std::size_t kColumn = 30;

constexpr const char* kHead =
    "gradring train: train a model on one or many ranks\n\n"
    "  gradring train [options]                          one rank, or as many as --nprocs says\n"
    "  gradring launch --nproc-per-node N train [options]\n\n"
    "Options; in brackets the default:\n";

constexpr const char* kFoot =
    "\nEvery option but the last four can also be set by a variable (--batch-size: GRADRING_BATCH_SIZE) or in the "
    "--config\n"
    "file (batch-size = 64). The command line wins, then the environment, then the file.\n"
    "\nA run directory holds config.resolved.toml (--config takes it back), metrics.jsonl, summary.json and logs/.\n"
    "\nExit codes: 0 ok; 1 training failed; 2 usage; 3 this machine (no such device, disk full); 4 bad data; 5 "
    "diverged;\n"
    "130 Ctrl-C; 161 a rank was lost; 162 a rank was late or never came; 163 the ranks differ.\n"
    "\nExamples:\n"
    "  gradring train                                    the embedded digits\n"
    "  gradring train --dataset mnist --data-dir DIR --nprocs 2\n"
    "  gradring launch --nproc-per-node 2 train --dataset mnist --data-dir DIR --epochs 2\n";

std::string entry(const std::string& name, const std::string& value, const std::string& help) {
  const std::string option = fmt::format("  --{}{}{}", name, value.empty() ? "" : " ", value);
  const std::string gap =
      option.size() < kColumn ? std::string(kColumn - option.size(), ' ') : "\n" + std::string(kColumn, ' ');
  return option + gap + help + "\n";
}

/// " [64]", a string without its quotes; nothing for an empty one and for flags.
std::string shown_default(const Option& option) {
  std::string value = option.show(TrainConfig());
  if (value.starts_with('"')) value = value.substr(1, value.size() - 2);
  return value.empty() || option.is_flag() ? "" : " [" + value + "]";
}

}  // namespace

std::string train_help() {
  std::string text = kHead;
  for (const Option& option : train_options())
    text += entry(option.name, option.value, option.help + shown_default(option));
  text += entry("config", "F.toml", "read options from this file");
  text += entry("print-config", "", "show every option, its value and where it came from, and stop");
  text += entry("dry-run", "", "check options, device and data, and stop before training");
  text += entry("help", "", "this text");
  return text + kFoot;
}

}  // namespace gradring::train
