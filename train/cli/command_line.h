// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradring::train {

/// One option of a command: --name VALUE, --name=VALUE, or -l VALUE for its letter; a flag takes no value, or =true, =false.
struct CommandOption {
  std::string name;   ///< without the dashes
  char letter = 0;    ///< its short form, or 0
  std::string value;  ///< what --help calls the value: "N", "fp32|fp16"; empty for a flag
  std::string help;   ///< with its default in brackets, where it has one
  /// Takes the text of the value; a flag gets "true", unless it was given another word by =.
  ///
  /// Errors    UsageError that says what was expected.
  std::function<void(std::string_view)> read;
};

/// What a command understands.
struct CommandLine {
  std::string command;  ///< "gradring bench loader", for messages
  std::vector<CommandOption> options;
  bool takes_words = false;  ///< whether words that are no options are allowed, `mnist` in `data fetch mnist`
};

/// Reads `args` from the front to the back, calling the options' readers; the last one of a name wins. - and _ are the same
/// within a name. A value that begins with -- must be attached by =. --help and -h belong to every command.
struct CommandWords {
  std::vector<std::string> words;  ///< what is no option, in order
  bool help = false;
};

/// Errors    UsageError: an unknown option (names the nearest), a value that is missing or one too many, a stray word; and
///           what the readers throw.
CommandWords read_command_line(const CommandLine& line, std::span<const std::string> args);

/// The lines of --help for the options, --help included.
std::string help_of(std::span<const CommandOption> options);

/// A switch without a value: --dry-run; =true and the like are refused.
std::function<void(std::string_view)> set_switch(const std::string& name, bool& on);

/// -J, --json: the results on stdout as JSON.
CommandOption json_switch(bool& on);

}  // namespace gradring::train
