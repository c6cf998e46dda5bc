// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
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
  std::string group = {};                 ///< its heading in --help; empty: "Options"
  std::vector<std::string> aliases = {};  ///< older spellings, accepted but not shown; one letter: a short form

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
/// VALUE, -lVALUE; a flag takes no value, or =true, =false. - and _ are the same within a name. A value that begins
/// with -- must be attached by =. --help and -h belong to every command.
///
/// Errors    UsageError: an unknown option (names the nearest), a missing value, an unexpected argument; and what the
///           readers throw.
CommandWords read_command_line(const CommandLine& line, std::span<const std::string> args);

// Builders of common options. Each reads into a variable, which must outlive the option.

/// A flag without a value: --dry-run; =true and the like are refused.
Option switch_option(const std::string& name, const std::string& help, bool& on);
/// Any text; `placeholder` names it in --help.
Option text_option(const std::string& name, const std::string& placeholder, const std::string& help,
                   std::string& value);
/// One of several words, which --help lists. `words` must outlive the option.
Option choice_option(const std::string& name, std::span<const std::string_view> words, const std::string& help,
                     std::string& value);
/// --json: results on standard output as JSON.
Option json_switch(bool& on);

template <std::integral Integer>
Option count_option(const std::string& name, const std::string& help, std::int64_t least, Integer& value) {
  return {.name = name, .value = "N", .help = help, .read = [=, &value](std::string_view text) {
            value = static_cast<Integer>(parse_integer(name, text, {.least = least}));
          }};
}

}  // namespace gradring::train
