// SPDX-License-Identifier: Apache-2.0
#include "train/cli/parse_train.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "train/config/usage_error.h"

namespace gradring::train {
namespace {

constexpr const char* kFooter =
    "\nEvery option can also be set by a GRADRING_* variable (--batch-size: GRADRING_BATCH_SIZE) or in the --config file\n"
    "(batch-size = 64). The command line wins, then the environment, then the file.\n"
    "\nExamples:\n"
    "  gradring train                                        the embedded digits, one rank\n"
    "  gradring train --dataset mnist --data-dir DIR --nprocs 2\n"
    "  gradring launch --nproc-per-node 2 train --dataset mnist --data-dir DIR --epochs 2\n";

void add_option(CLI::App& app, const Option& option, ParsedTrain& parsed) {
  if (option.value.empty()) {
    app.add_flag_callback("--" + option.name, [&parsed, &option] { parsed.options[option.name] = "true"; }, option.help);
    return;
  }
  const std::string shown = option.help + " [" + option.show(TrainConfig()) + "]";
  app.add_option_function<std::string>(
         "--" + option.name, [&parsed, &option](const std::string& text) { parsed.options[option.name] = text; }, shown)
      ->type_name(option.value)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

[[noreturn]] void refuse_unknown(const std::string& word) {
  if (!word.starts_with("--")) throw UsageError("'" + word + "' is not understood: options begin with --");
  const std::string name = word.substr(2, word.find('=') - 2);
  throw UsageError("there is no option --" + name + "." + nearest_option(name));
}

}  // namespace

ParsedTrain parse_train(std::span<const std::string> args) {
  ParsedTrain parsed;
  CLI::App app("Trains a model on one or many ranks.", "gradring train");
  app.footer(kFooter);
  app.allow_extras();
  for (const Option& option : train_options()) add_option(app, option, parsed);
  app.add_option("--config", parsed.config_file, "TOML file with any of the options above")->type_name("F.toml");
  app.add_flag("--print-config", parsed.print_config, "show every option, its value and where it came from, and stop");
  app.add_flag("--dry-run", parsed.dry_run, "check options and data, and stop before training");

  std::vector<std::string> reversed(args.rbegin(), args.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    parsed.help = app.help();
    return parsed;
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  if (const auto unknown = app.remaining(); !unknown.empty()) refuse_unknown(unknown.front());
  return parsed;
}

}  // namespace gradring::train
