// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace gradring::train {

/// The options of a run, in its run directory: config.resolved.toml as it was started, and config.resolved-2.toml, -3, ...
/// for each resume that changed some. None is ever overwritten, and --config accepts each.

/// config.resolved.toml
std::filesystem::path first_config(const std::filesystem::path& run_dir);

/// The one of the highest number; config.resolved.toml where there is no other.
std::filesystem::path newest_config(const std::filesystem::path& run_dir);

/// Writes the next one; config.resolved.toml where there is none, because somebody removed it.
///
/// Returns   its path.
/// Errors    EnvironmentError.
std::filesystem::path write_next_config(const std::filesystem::path& run_dir, std::string_view text);

}  // namespace gradring::train
