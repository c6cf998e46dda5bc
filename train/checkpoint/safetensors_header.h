// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "train/checkpoint/tensor_record.h"

namespace gradring::train {

/// What one entry of the header says: a tensor, and where its bytes lie behind the header.
struct StoredTensor : TensorInfo {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;            ///< by `begin`
  std::map<std::string, std::string> metadata;  ///< of __metadata__
};

/// Larger headers are refused before memory is taken for them: this one describes tens of thousands of tensors.
constexpr std::uint64_t kLargestHeaderBytes = 4u << 20;

/// Parses and judges the JSON of a header, in front of `data_bytes` bytes of tensors.
///
/// Errors    CheckpointError with `path`, as SafetensorsReader.
/// Cost      at most 48 MB whatever the text says: it is read in one pass that keeps no tree, and stops at the first value
///           that is out of place.
SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                           const std::filesystem::path& path);

/// Why a name cannot stand in a header; empty if it can. Names end up in C strings and on terminals.
std::string_view unfit_name(std::string_view name);

}  // namespace gradring::train
