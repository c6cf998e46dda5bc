// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "train/options/command_line.h"

namespace gradring::train {

using Arguments = std::span<const std::string>;
using Words = std::vector<std::string>;  ///< arguments that are not options

/// What a command destroys only after its error is reported, the last made first.
class KeptAlive {
 public:
  KeptAlive() = default;
  ~KeptAlive() {
    while (!kept_.empty()) kept_.pop_back();
  }
  KeptAlive(const KeptAlive&) = delete;
  KeptAlive& operator=(const KeptAlive&) = delete;

  template <class Object, class... Values>
  Object& make(Values&&... values) {
    auto made = std::make_shared<Object>(std::forward<Values>(values)...);
    kept_.push_back(made);
    return *made;
  }

 private:
  std::vector<std::shared_ptr<void>> kept_;
};

/// A command of the program, or a subcommand of one: `fetch` in `gradring data fetch`.
struct Command {
  std::string_view name;
  std::string_view help;                        ///< one line for the list of commands
  int (*run)(Arguments, KeptAlive&) = nullptr;  ///< returns the exit code; null if there are subcommands
  CommandLine (*describe)() = nullptr;          ///< its syntax; the readers must not be called
  std::span<const Command* const> subcommands = {};
  std::string_view usage = {};  ///< what follows the name of a command with subcommands
  std::string_view kind = {};   ///< what its subcommands are: "action"
  std::string_view notes = {};  ///< a line below the list of its subcommands
};

/// Runs `body`. What it throws is printed once on stderr, behind the name that it has set then ("gradring eval"), or left
/// for the launcher to print; what it kept is destroyed after that.
///
/// Returns   the exit code.
/// Errors    a failure to write standard output, for finish_standard_output.
int run_command(const std::function<int(std::string& name, KeptAlive& kept)>& body);

/// Parses a command line. Returns the words, or nothing if help was asked for and printed.
std::optional<Words> words_or_help(const CommandLine& line, Arguments args);

/// The one word of a command whose usage is `usage`: "gradring ckpt ls RUN".
///
/// Errors    UsageError if there is none, or more than one.
const std::string& only_word(const Words& words, std::string_view usage);

/// -J, --json-file FILE: a new file for results.
Option json_file_option(std::string& file);
/// An option that names a file to write: refused before anything is done if its folder does not exist.
Option new_file_option(std::string_view names, const std::string& placeholder, const std::string& help,
                       std::string& file);

/// Indented JSON as commands print it: bytes that are not UTF-8, for example of a file's name, become U+FFFD.
std::string shown_json(const nlohmann::ordered_json& json);

/// Prints the JSON of a command with --json.
void print_json(const nlohmann::ordered_json& json);

/// Command::describe of a command whose options are read into an `Options`: the namespace of that type has
/// command_line(Options&).
template <class Options>
CommandLine describe() {
  Options unused;
  return command_line(unused);
}

/// Such a command. The same namespace has run(options) or run(options, words), which is called unless help was asked
/// for.
template <class Options>
constexpr Command make_command(std::string_view name, std::string_view help) {
  constexpr auto read_and_run = [](Arguments args, KeptAlive&) -> int {
    Options options;
    const auto words = words_or_help(command_line(options), args);
    if (!words) return kOk;
    const auto run_it = [&] {
      if constexpr (requires { run(options, *words); })
        return run(options, *words);
      else
        return run(options);
    };
    if constexpr (std::is_same_v<decltype(run_it()), int>) return run_it();
    run_it();
    return kOk;
  };
  return {.name = name, .help = help, .run = read_and_run, .describe = describe<Options>};
}

}  // namespace gradring::train
