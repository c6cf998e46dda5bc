// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "train/records/checkpoint/file_system.h"
#include "train/records/checkpoint/pickle_writer.h"
#include "train/records/checkpoint/tensor_record.h"

namespace gradring::train {

/// Writes the value of a dense tensor whose bytes are the record data/`index` of the archive.
void write_tensor(PickleWriter& pickle, const TensorInfo& tensor, std::uint64_t bytes, std::size_t index);

/// Writes and syncs an archive: the pickle, and the bytes of `tensors` as its storages 0, 1, ...
/// `about`: text for the record extra/gradring.json, which PyTorch ignores; empty: no such record.
void write_pt_archive(FileSystem& files, const std::filesystem::path& path, std::string_view pickle,
                      std::span<const TensorRecord* const> tensors, std::string_view about = {});

}  // namespace gradring::train
