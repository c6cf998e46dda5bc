// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace gradring::train {

/// Files by which the launcher and its workers exchange data. The launcher's readers never block.

/// For workers: writes the step of the newest checkpoint, as a decimal number, atomically to `path`
/// (WorkerEnvironment::progress_file). An empty path does nothing. Returns whether it was written.
bool write_progress(const std::string& path, std::int64_t step);

/// For launchers: nothing unless it is a regular file with a number of 0 or more.
std::optional<std::int64_t> read_progress(const std::string& path);

/// For agents: writes the token by which the ranks of several nodes authenticate each other in one attempt
/// (comm::TcpGroupOptions::token): 64 hexadecimal digits in the file rank-token, mode 0600, in the folder
/// GRADRING_STORE. Each agent computes it for its own ranks, so that it is never sent.
///
/// Errors    DeviceError if it exists, or cannot be written.
void write_rank_token(const std::filesystem::path& store, const std::string& token);

/// For workers: empty if the store has no token: on one node, or under another launcher.
///
/// Errors    InvalidArgument if it cannot be read, or is accessible to others.
std::string read_rank_token(const std::filesystem::path& store);

}  // namespace gradring::train
