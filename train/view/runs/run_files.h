// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/directory.h"

namespace gradring::train {

/// Receives the next part of a text.
using TextSink = std::function<void(std::string_view text)>;

/// Writes the events of one kind from a metrics.jsonl as CSV: a head with the names of the members, in the order in
/// which the file first has them, and a row for each event. `event` is "train", "eval", ... Numbers are those of the
/// file. An absent member is empty; null, which stands for NaN and infinity, is nan. Members of objects have columns
/// of their own, "config.lr". A `ranks` event becomes a row for each rank, with a column "rank". Other lists are JSON.
///
/// Returns   warnings about lines that were ignored: incomplete, or no JSON (MetricsLines::warnings); and if the names of
///           members have more than 1 MiB in all, so that some have no column.
/// Errors    EnvironmentError if the file cannot be read; what `sink` throws.
/// Cost      reads the file twice; memory for one line (kMostLineBytes) as JSON, and for the names of the columns.
/// Source    RFC 4180.
std::vector<std::string> export_csv(const std::filesystem::path& metrics, std::string_view event, const TextSink& sink);

/// Whether `head` begins as such CSV: all columns are members of events.
bool is_exported_csv(std::string_view head);

/// What the removal of a run directory would do.
struct RunRemoval {
  std::filesystem::path run{};
  Directory directory{};  ///< the same, open: its path may be another run's by the time of remove()
  std::vector<std::filesystem::path> files{};    ///< that gradring wrote; those that identify a run go last
  std::vector<std::filesystem::path> folders{};  ///< the same, removed afterwards if they are empty
  std::vector<std::filesystem::path> kept{};     ///< that gradring did not write, links among them
  std::uint64_t bytes = 0;                       ///< of the files
};

/// Finds what gradring wrote into a run directory, by name and place. Looks through no symbolic link. Accepts what is
/// left of one whose removal was interrupted.
///
/// Errors    UsageError if `run` is no run directory, a symbolic link, or the run is running; EnvironmentError if it
///           cannot be read.
RunRemoval plan_removal(const std::filesystem::path& run);

/// Removes the files, and each folder that is empty then. An interrupted removal leaves a run directory that can be
/// removed again. The run is locked in the meantime.
///
/// Errors    UsageError if a run has started there since, or the path is another directory's now; EnvironmentError for
///           a file that cannot be removed.
void remove(const RunRemoval& removal);

}  // namespace gradring::train
