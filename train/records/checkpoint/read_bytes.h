// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "train/records/checkpoint/file_system.h"

namespace gradring::train {

/// The bytes at `offset` of a file.
///
/// Errors    MemoryError if they need more memory than is available: a header may lie, and a file may be sparse;
///           CheckpointError if the file ends before; FileError if a read fails.
std::vector<std::byte> read_bytes(const InputFile& file, const std::filesystem::path& path, std::uint64_t offset,
                                  std::uint64_t bytes);

/// Errors    MemoryError unless `bytes` of memory may be allocated for the contents of a file.
void require_memory(const std::filesystem::path& path, std::uint64_t bytes);

}  // namespace gradring::train
