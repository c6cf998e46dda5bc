// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/launch/options/parse_launch.h"

namespace gradring::train {

/// How the arguments behind the options name a program.
enum class CommandKind {
  by_first_word,  ///< `train`, `bench`, a script that ends in .py; or `-- program`
  program,        ///< --no-python
  python_module,  ///< -m
  python_script,  ///< --run-path
};

/// Options as they were given; what is empty was not.
struct LaunchDraft {
  LaunchOptions options{};
  std::optional<std::string> nproc{};
  bool standalone = false;
  std::optional<NodeRange> nnodes{};
  std::optional<std::string> run_id{}, master_addr{}, rdzv_endpoint{}, local_addr{}, listen{};
  std::optional<int> master_port{};
  bool is_module = false, is_no_python = false, is_run_path = false;
};

/// Reads the arguments behind the options: which program to run, with which arguments.
///
/// Errors    InvalidArgument: no arguments; --module together with --no-python; a first word that names nothing known.
void read_command(std::span<const std::string> words, LaunchDraft& draft, const LaunchWorld& world);

/// Fills in what follows from several options together.
///
/// Errors    InvalidArgument that names options that contradict each other.
void resolve_launch(LaunchDraft& draft, const LaunchWorld& world);

}  // namespace gradring::train
