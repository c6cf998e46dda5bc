// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/base/directory.h"

namespace gradring::train {

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
