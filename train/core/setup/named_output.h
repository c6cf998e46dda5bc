// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string_view>

#include "train/options/command_line.h"

namespace gradring::train {

/// Whether a file whose first kHeadBytes are `head` was written by gradring, as what an option writes: a page by its
/// generator, results by their first members or columns. Decompressed if the file is.
using IsOurs = std::function<bool(std::string_view head)>;
inline constexpr std::size_t kHeadBytes = 4096;

/// A file that an option names for a command to write.
struct NamedOutput {
  std::string_view option{};        ///< "--output"
  std::filesystem::path path{};     ///< empty: the option was not given
  std::filesystem::path created{};  ///< a folder that the command creates before it writes, normal; empty: none
  IsOurs is_ours{};                 ///< empty: gradring's files of this kind have no mark
  std::string_view advice = "name another file, or replace it with --force";
};

/// What may be replaced besides.
enum class Replace : bool {
  ours,  ///< what gradring wrote as the same, and empty files
  any,   ///< --force: any file
};

/// Checks, before anything is computed, that a file may be written: it is new, or may be replaced. A file of a run (its
/// metrics, configuration, summary, lock, logs, checkpoints, event files of TensorBoard) never is. What is no regular
/// file, such as /dev/stdout, is written into.
///
/// Errors    UsageError, also if its folder does not exist.
void check_output(const NamedOutput& file, Replace replace);

/// --force, of a command that writes files which the user names.
Option force_option(Replace& replace);

}  // namespace gradring::train
