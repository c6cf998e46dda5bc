// SPDX-License-Identifier: Apache-2.0
#include "train/cli/command_line.h"

#include <algorithm>
#include <optional>

#include "kernels/runtime/nearest_name.h"
#include "train/config/usage_error.h"

namespace gradring::train {
namespace {

constexpr std::size_t kColumn = 30;  // where --help explains

/// One option as it was typed: --name, --name=value, -l.
struct Typed {
  std::string name;
  char letter = 0;
  std::optional<std::string> value;

  std::string shown() const { return letter ? std::string{'-', letter} : "--" + name; }
};

/// Reads a command line from the front to the back.
class Reader {
 public:
  Reader(const CommandLine& line, std::span<const std::string> args) : line_(line), args_(args) {}

  CommandWords read() {
    while (next_ < args_.size()) read_one(args_[next_++]);
    return std::move(result_);
  }

 private:
  void read_one(const std::string& text) {
    const bool is_name = text.starts_with("--") && text != "--";
    const bool is_letter = text.size() == 2 && text[0] == '-' && text[1] != '-' && known_letter(text[1]);
    if (!is_name && !is_letter) return take_word(text);
    const Typed typed = is_name ? split(text) : Typed{.name = {}, .letter = text[1], .value = std::nullopt};
    if (typed.name == "help" || typed.letter == 'h') return read_help(typed);
    const CommandOption& option = find(typed);
    option.read(option.value.empty() ? typed.value.value_or("true") : value_of(typed));
  }

  void take_word(const std::string& text) {
    if (!line_.takes_words || text.empty() || text[0] == '-')
      throw UsageError("'" + text + "' is not understood: options begin with --" + see_help());
    result_.words.push_back(text);
  }

  void read_help(const Typed& typed) {
    if (typed.value) throw UsageError("--help takes no value" + see_help());
    result_.help = true;
  }

  bool known_letter(char letter) const {
    return letter == 'h' || std::ranges::any_of(line_.options, [&](const auto& o) { return o.letter == letter; });
  }

  static Typed split(const std::string& text) {
    const std::size_t end = std::min(text.find('='), text.size());
    Typed typed{.name = text.substr(2, end - 2), .letter = 0, .value = std::nullopt};
    std::ranges::replace(typed.name, '_', '-');
    if (end < text.size()) typed.value = text.substr(end + 1);
    return typed;
  }

  const CommandOption& find(const Typed& typed) const {
    std::vector<std::string_view> names = {"help"};
    for (const CommandOption& option : line_.options) {
      if (typed.letter ? option.letter == typed.letter : option.name == typed.name) return option;
      names.push_back(option.name);
    }
    throw UsageError("there is no option --" + typed.name + "." + did_you_mean(typed.name, names));
  }

  std::string value_of(const Typed& typed) {
    if (typed.value) return *typed.value;
    if (next_ == args_.size() || args_[next_].starts_with("--"))
      throw UsageError(typed.shown() + " needs a value" + see_help());
    return args_[next_++];
  }

  std::string see_help() const { return "; see " + line_.command + " --help"; }

  const CommandLine& line_;
  std::span<const std::string> args_;
  std::size_t next_ = 0;
  CommandWords result_;
};

std::string entry(const CommandOption& option) {
  const std::string letter = option.letter ? std::string{'-', option.letter, ',', ' '} : "";
  const std::string text = "  " + letter + "--" + option.name + (option.value.empty() ? "" : " " + option.value);
  const std::string gap =
      text.size() < kColumn ? std::string(kColumn - text.size(), ' ') : "\n" + std::string(kColumn, ' ');
  return text + gap + option.help + "\n";
}

}  // namespace

CommandWords read_command_line(const CommandLine& line, std::span<const std::string> args) {
  return Reader(line, args).read();
}

std::string help_of(std::span<const CommandOption> options) {
  std::string text;
  for (const CommandOption& option : options) text += entry(option);
  return text + entry({.name = "help", .letter = 0, .value = {}, .help = "this text", .read = {}});
}

std::function<void(std::string_view)> set_switch(const std::string& name, bool& on) {
  return [name, &on](std::string_view text) {
    if (text != "true") throw UsageError("--" + name + " takes no value");
    on = true;
  };
}

CommandOption json_switch(bool& on) {
  return {.name = "json", .letter = 'J', .value = {}, .help = "as JSON, for programs", .read = set_switch("json", on)};
}

}  // namespace gradring::train
