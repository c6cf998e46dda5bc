// SPDX-License-Identifier: Apache-2.0
#include "train/cli/parse_train.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "train/config/usage_error.h"

namespace gradring::train {
namespace {

constexpr const char* kFooter =
    "\nEvery option can also be set by a GRADRING_* variable (--batch-size: GRADRING_BATCH_SIZE) or in the --config "
    "file\n"
    "(batch-size = 64). The command line wins, then the environment, then the file.\n"
    "\nExamples:\n"
    "  gradring train                                        the embedded digits, one rank\n"
    "  gradring train --dataset mnist --data-dir DIR --nprocs 2\n"
    "  gradring launch --nproc-per-node 2 train --dataset mnist --data-dir DIR --epochs 2\n";

/// The default as --help shows it: " [64]", without a string's quotes; nothing for an empty one.
std::string shown_default(const Option& option) {
  std::string value = option.show(TrainConfig());
  if (value.starts_with('"')) value = value.substr(1, value.size() - 2);
  return value.empty() ? "" : " [" + value + "]";
}

/// Lets the parser know the option; its text is asked for afterwards.
void add_option(CLI::App& app, const Option& option) {
  const std::string name = "--" + option.name;
  if (option.value.empty()) {
    app.add_flag(name, option.help);
    return;
  }
  app.add_option(name)
      ->description(option.help + shown_default(option))
      ->type_name(option.value)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

OptionTexts given_texts(const CLI::App& app) {
  OptionTexts texts;
  for (const Option& option : train_options()) {
    const auto& results = app.get_option("--" + option.name)->results();
    if (!results.empty()) texts[option.name] = results.back();
  }
  return texts;
}

[[noreturn]] void refuse_unknown(const std::string& word) {
  if (!word.starts_with("--") || word == "--")
    throw UsageError("'" + word + "' is not understood: options begin with --");
  const std::string name = word.substr(2, word.find('=') - 2);
  throw UsageError("there is no option --" + name + "." + nearest_option(name));
}

}  // namespace

ParsedTrain parse_train(std::span<const std::string> args) {
  ParsedTrain parsed;
  CLI::App app("Trains a model on one or many ranks.", "gradring train");
  app.footer(kFooter);
  app.allow_extras();
  for (const Option& option : train_options()) add_option(app, option);
  app.add_option("--config", parsed.config_file, "TOML file with any of the options above")->type_name("F.toml");
  app.add_flag("--print-config", parsed.print_config, "show every option, its value and where it came from, and stop");
  app.add_flag("--dry-run", parsed.dry_run, "check options and data, and stop before training");

  std::vector<std::string> reversed(args.rbegin(), args.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    parsed.help = app.help();
    return parsed;
  } catch (const CLI::ArgumentMismatch& error) {  // "--lr: 1 required F missing"
    const std::string text = error.what();
    throw UsageError(text.substr(0, text.find(':')) + " needs a value; see gradring train --help");
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  if (const auto unknown = app.remaining(); !unknown.empty()) refuse_unknown(unknown.front());
  parsed.options = given_texts(app);
  return parsed;
}

}  // namespace gradring::train
