// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/options/parse_value.h"

namespace gradring::train {

/// One option of a command. The table of these is the source of the parser, --help, the manual page and the
/// completions.
struct Option {
  std::string name;   ///< without the dashes
  char letter = 0;    ///< short form, or 0
  std::string value;  ///< placeholder in --help: "N", or the choices: "fp32|fp16"; empty for a flag (see takes_path)
  std::string help;   ///< noun phrase, with unit, default and allowed values
  /// Takes the text of the value; a flag gets "true", or the word behind =.
  ///
  /// Errors    InvalidArgument that says what was expected.
  std::function<void(std::string_view)> read;
  std::string group = {};  ///< its heading in --help; empty: "Options"

  bool is_flag() const { return value.empty(); }
};

/// Everything that is known about the syntax of one command.
struct CommandLine {
  std::string command;                  ///< "gradring bench loader"
  std::string purpose = {};             ///< one line for --help
  std::vector<std::string> usage = {};  ///< synopsis lines, each beginning with the program's name
  std::vector<Option> options;
  bool takes_words = false;   ///< whether arguments that are not options are allowed, `mnist` in `data fetch mnist`
  bool ends_at_word = false;  ///< the first such argument and all that follow belong to another program
  std::string notes = {};  ///< paragraphs behind the options in --help; lines that begin with a blank are not wrapped
};

struct CommandWords {
  std::vector<std::string> words;  ///< arguments that are not options, in order
  bool help = false;
};

/// Parses `args` with CLI11 and calls the options' readers in order of appearance: --name VALUE, --name=VALUE, -l
/// VALUE, -lVALUE; a flag takes no value, or =true, =false, and --no-NAME is --NAME=false. - and _ are the same within a
/// name. A value that begins with -- must be attached by =. --help, -h and --color belong to every command.
///
/// Errors    UsageError: an unknown option (names the nearest), a missing value, an unexpected argument; and what the
///           readers throw.
CommandWords read_command_line(const CommandLine& line, std::span<const std::string> args);

// Builders of options, of every command but `gradring train` (its rows: train/core/config/option_rows.h). `names` is the
// name, or "name,n" with its letter. Each reads into a variable, which must outlive the option.

/// An option without its reader.
Option bare_option(std::string_view names, std::string value, std::string help);

/// Any value: `parse` takes the option's name and the text, as those of parse_value.h do, and returns the value.
template <class Parse, class Value>
Option value_option(std::string_view names, std::string placeholder, std::string help, Parse parse, Value& value) {
  Option option = bare_option(names, std::move(placeholder), std::move(help));
  option.read = [name = option.name, parse, &value](std::string_view text) {
    value = static_cast<Value>(parse(name, text));
  };
  return option;
}
/// A flag: --dry-run.
Option switch_option(std::string_view names, std::string help, bool& on);
/// Any text; `placeholder` names it in --help.
template <class Text>
Option text_option(std::string_view names, std::string placeholder, std::string help, Text& value) {
  const auto parse = [](std::string_view, std::string_view text) { return std::string(text); };
  return value_option(names, std::move(placeholder), std::move(help), parse, value);
}
/// One of several words, which --help lists. `words` must outlive the option.
Option choice_option(std::string_view names, std::span<const std::string_view> words, std::string help,
                     std::string& value);
/// A whole number of at least `least`.
template <class Integer>
Option count_option(std::string_view names, std::string help, std::int64_t least, Integer& value) {
  const auto parse = [least](std::string_view name, std::string_view text) {
    return parse_integer(name, text, {.least = least});
  };
  return value_option(names, "N", std::move(help), parse, value);
}
/// --color, of every command: sets GRADRING_COLOR of this process and those that it starts.
Option color_option();
/// -J, --json: results on standard output as JSON.
Option json_switch(bool& on);

}  // namespace gradring::train
