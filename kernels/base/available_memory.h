// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace gradring {

/// Host memory in bytes that this process may still take: the kernel's estimate (MemAvailable), or less where one of its
/// control groups (memory.max of version 2, memory.limit_in_bytes of version 1) or RLIMIT_AS leaves less. The largest
/// number if nothing is known. `root`: the file system's, for tests.
std::uint64_t available_memory(const std::filesystem::path& root = "/");

/// Whether a reader may allocate what a file promises: empty if `bytes` are available, otherwise why not:
/// "20480 MiB of memory, but 5120 MiB are available".
std::string lack_of_memory(std::uint64_t bytes);

}  // namespace gradring
