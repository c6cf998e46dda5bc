// SPDX-License-Identifier: Apache-2.0
#include "train/options/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "kernels/base/nearest_name.h"
#include "train/options/environment_variable.h"
#include "train/options/path_value.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

void add(CLI::App& app, const Option& option) {
  const auto read = [&option](const CLI::results_t& texts) {
    option.read(value_text("--" + option.name, option.value, texts.back()));
    return true;
  };
  const std::string letter = option.letter != 0 ? std::string(",-") + option.letter : "";
  CLI::Option* added = app.add_option("--" + option.name + letter, read);
  if (option.is_flag()) added->expected(0);
  added->trigger_on_parse();  // readers run in the order of the command line
}

[[noreturn]] void refuse_unknown(const CommandLine& line, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string_view> known = {"help", "color"};
  for (const Option& option : line.options) known.push_back(option.name);
  const std::string_view nearest = name.starts_with("--") ? nearest_name(std::string_view(name).substr(2), known) : "";
  throw UsageError(fmt::format("unknown option {}.{} See {} --help", name,
                               nearest.empty() ? "" : fmt::format(" Did you mean '--{}'?", nearest), line.command));
}

[[noreturn]] void refuse_unexpected(const CommandLine& line, const std::string& word) {
  throw UsageError(fmt::format("unexpected argument '{}': options begin with --; see {} --help", word, line.command));
}

/// Rewrites what CLI11 reads otherwise than this program: _ in names, --no-FLAG, an empty value behind =, a missing
/// value, -l=VALUE. Stops before the first word where another program's arguments begin, and after --help there.
class Normalizer {
 public:
  Normalizer(const CLI::App& app, const CommandLine& line, std::span<const std::string> args)
      : app_(app), line_(line), args_(args) {}

  std::vector<std::string> words() {
    while (next_ < args_.size() && !ends_here(args_[next_])) take(args_[next_++]);
    return std::move(words_);
  }
  std::size_t used() const { return next_; }

 private:
  bool ends_here(const std::string& word) const {
    if (!line_.ends_at_word) return false;
    const bool asked_for_help = !words_.empty() && (words_.back() == "--help" || words_.back() == "-h");
    return asked_for_help || word.empty() || word[0] != '-' || word == "--";
  }

  void take(const std::string& word) {
    if (word == "--") refuse_unexpected(line_, word);
    const std::size_t sign = std::min(word.find('='), word.size());
    std::string name = word.substr(0, sign);
    if (name.starts_with("--")) std::ranges::replace(name, '_', '-');
    const CLI::Option* option = app_.get_option_no_throw(name);
    if (option == nullptr && sign == word.size() && is_negated_flag(name)) {
      words_.push_back("--" + name.substr(kNegation.size()) + "=false");
      return;
    }
    if (option == nullptr || option->get_items_expected_max() == 0) {
      words_.push_back(name + word.substr(sign));
      return;
    }
    words_.push_back(name);
    if (sign < word.size())
      words_.push_back(word.substr(sign + 1));
    else if (next_ == args_.size() || args_[next_].starts_with("--"))
      throw UsageError(fmt::format("{} needs a value; see {} --help", name, line_.command));
    else
      words_.push_back(args_[next_++]);
  }

  static constexpr std::string_view kNegation = "--no-";
  bool is_negated_flag(const std::string& name) const {
    if (!name.starts_with(kNegation)) return false;
    const CLI::Option* flag = app_.get_option_no_throw("--" + name.substr(kNegation.size()));
    return flag != nullptr && flag->get_items_expected_max() == 0;
  }

  const CLI::App& app_;
  const CommandLine& line_;
  std::span<const std::string> args_;
  std::size_t next_ = 0;
  std::vector<std::string> words_;
};

}  // namespace

CommandWords read_command_line(const CommandLine& line, std::span<const std::string> args) {
  CommandWords result;
  CLI::App app;
  app.set_help_flag();  // CLI11's own prints
  app.allow_extras();
  const Option help = {.name = "help", .letter = 'h', .value = {}, .help = {}, .read = [&](std::string_view text) {
                         if (text != "true") throw UsageError("--help takes no value; see " + line.command + " --help");
                         result.help = true;
                       }};
  const Option color = color_option();
  add(app, help);
  add(app, color);
  for (const Option& option : line.options) add(app, option);

  Normalizer normalizer(app, line, args);
  std::vector<std::string> words = normalizer.words();
  std::ranges::reverse(words);  // as CLI11 wants them
  app.parse(std::move(words));
  for (const std::string& word : app.remaining()) {
    if (word.starts_with('-')) refuse_unknown(line, word);
    if (!line.takes_words || word.empty()) refuse_unexpected(line, word);
    result.words.push_back(word);
  }
  const auto rest = args.subspan(normalizer.used());
  result.words.insert(result.words.end(), rest.begin(), rest.end());
  return result;
}

Option bare_option(std::string_view names, std::string value, std::string help) {
  const std::size_t comma = std::min(names.find(','), names.size());
  return {.name = std::string(names.substr(0, comma)),
          .letter = comma < names.size() ? names.back() : '\0',
          .value = std::move(value),
          .help = std::move(help),
          .read = {}};
}

Option switch_option(std::string_view names, std::string help, bool& on) {
  const auto parse = [](std::string_view name, std::string_view text) {
    if (text != "true" && text != "false") throw UsageError(fmt::format("--{} takes no value", name));
    return text == "true";
  };
  return value_option(names, {}, std::move(help), parse, on);
}

Option choice_option(std::string_view names, std::span<const std::string_view> words, std::string help,
                     std::string& value) {
  const auto parse = [words](std::string_view name, std::string_view text) { return parse_word(name, text, words); };
  return value_option(names, fmt::format("{}", fmt::join(words, "|")), std::move(help), parse, value);
}

Option color_option() {
  static constexpr std::string_view kWords[] = {"auto", "always", "never"};
  Option option = bare_option("color", fmt::format("{}", fmt::join(kWords, "|")),
                              "escape codes in the output; auto: on a terminal (default GRADRING_COLOR, or auto)");
  option.read = [](std::string_view text) { ::setenv(kColorVariable, parse_word("color", text, kWords).c_str(), 1); };
  return option;
}

Option json_switch(bool& on) { return switch_option("json,J", "results on standard output as JSON", on); }

}  // namespace gradring::train
