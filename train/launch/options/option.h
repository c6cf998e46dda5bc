// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/launch/options/launch_options.h"

namespace gradring::train {

/// How the words behind the options name a program.
enum class CommandKind {
  by_first_word,  ///< `train`, `bench`, a script that ends in .py; or `-- program`
  program,        ///< --no-python
  python_module,  ///< -m
  python_script,  ///< --run-path
};

/// What has been read so far. What is empty was not given.
struct LaunchDraft {
  LaunchOptions options{};
  std::optional<std::string> nproc{};
  bool standalone = false, has_nnodes = false;
  std::optional<std::string> run_id{}, master_addr{}, rdzv_endpoint{}, local_addr{};
  std::optional<int> master_port{};
  std::optional<std::chrono::milliseconds> join_timeout{}, last_call{};
  bool is_module = false, is_no_python = false, is_run_path = false;
};

/// One option of the launcher. `read` throws InvalidArgument with what is wrong about the value; the caller says where
/// it stood. A flag's value is "0" or "1".
struct Option {
  const char* name;   ///< with dashes
  char letter;        ///< "-m" besides "--module", or 0
  const char* value;  ///< what --help calls it; nullptr for a flag
  const char* help;
  void (*read)(LaunchDraft&, const std::string& value);
  const char* variable = nullptr;  ///< what else stands in for it, besides PET_<NAME>
};

struct OptionGroup {
  const char* title;
  std::span<const Option> options;
};

/// All options, as --help shows them: one source file a group.
std::span<const OptionGroup> launch_option_groups();

std::span<const Option> worker_options();      ///< how many workers, and what they run
std::span<const Option> watch_options();       ///< what follows when they end
std::span<const Option> log_options();         ///< where their output goes
std::span<const Option> rendezvous_options();  ///< how they find each other

/// Reads options: `--name value`, `--name=value`, `-n value`, `-n=value`, `-nvalue`; - and _ within a name are the same.
/// Returns how many words it took, up to the first that is no option; that is "--" at the latest. `help` is set, and
/// reading ends, at -h or --help.
///
/// Errors    InvalidArgument: an unknown option (names the nearest), a value missing or not understood.
std::size_t read_options(std::span<const std::string> words, LaunchDraft& draft, bool& help);

/// Reads PET_<NAME> of every option, or else the variable that it has besides.
void read_variables(const VariableLookup& lookup, LaunchDraft& draft);

}  // namespace gradring::train
