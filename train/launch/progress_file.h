// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gradring::train {

/// How far a worker has come in a way that outlives it: the step of its newest checkpoint, as a decimal number in a
/// file. By it the launcher tells a run that fails now and then from one that fails at the same place for ever.

/// For workers: leaves `step` at `path` (WorkerEnvironment::progress_file), whole or not at all. Does nothing if `path` is
/// empty. Returns whether it is there.
bool write_progress(const std::string& path, std::int64_t step);

/// For launchers: nothing if there is no such file, or no number of 0 or more in it.
std::optional<std::int64_t> read_progress(const std::string& path);

}  // namespace gradring::train
