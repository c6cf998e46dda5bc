// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "train/records/checkpoint/file_system.h"
#include "train/records/checkpoint/tensor_record.h"

namespace gradring::train {

/// A tensor in a safetensors file, and the place of its bytes after the header.
struct StoredTensor : TensorInfo {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;            ///< ordered by `begin`
  std::map<std::string, std::string> metadata;  ///< __metadata__
};

/// Larger headers are rejected before they are read. 4 MiB describe tens of thousands of tensors.
constexpr std::uint64_t kLargestHeaderBytes = 4u << 20;

/// Reads a safetensors file strictly: the header at once, the tensors one by one.
///
///   | 8 bytes: N, little-endian | N bytes: the header, JSON | the tensors' bytes, without holes |
///
/// Errors    CheckpointError, naming the file, what was found and what to do: a header larger than kLargestHeaderBytes
///           or than the file, that does not begin with '{', or is padded with anything but spaces; invalid JSON; a
///           duplicate key at any level; control characters in a name; an entry with other members than dtype, shape
///           and data_offsets; numbers that are not integers below 2^48; an unknown type; a shape that contradicts the
///           offsets; a hole or an overlap between tensors; bytes after the last one.
/// Cost      at most 48 MB of memory for the header, whatever it says: it is parsed in one pass without a tree.
/// Threads   any, at the same time.
/// Source    the safetensors format and its reference implementation; the audit of 2023 (TOB-SFTN).
/// Example   tests/train/records/checkpoint/safetensors_test.cpp
class SafetensorsReader {
 public:
  SafetensorsReader(std::unique_ptr<InputFile> file, std::filesystem::path path);

  /// Ordered by position in the file.
  const std::vector<StoredTensor>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  /// Everything before the first tensor: N and the header.
  const std::string& head() const { return head_; }

  /// Errors    MemoryError if it needs more memory than is available; CheckpointError, FileError.
  TensorRecord read(const StoredTensor& tensor) const;

 private:
  std::unique_ptr<InputFile> file_;
  std::filesystem::path path_;
  std::string head_;
  SafetensorsHeader header_;
};

/// All tensors of a file, ordered by position.
std::vector<TensorRecord> read_safetensors(FileSystem& files, const std::filesystem::path& path);

/// The head of a file, and its tensors in the order of their bytes.
struct SafetensorsPlan {
  std::vector<const TensorRecord*> order;
  std::string head;
};

/// Orders tensors by element size, largest first, then by name, so that every tensor is aligned to its element size and
/// the same tensors give the same bytes, whatever their order.
///
/// Errors    InvalidArgument if two tensors have one name, a name is not UTF-8 or has control characters, or a tensor's
///           bytes contradict its type and shape.
SafetensorsPlan plan_safetensors(std::span<const TensorRecord> tensors,
                                 const std::map<std::string, std::string>& metadata = {});

/// Writes and syncs a new file.
///
/// Errors    FileError; part of the file may exist.
void write_safetensors(FileSystem& files, const std::filesystem::path& path, const SafetensorsPlan& plan);

}  // namespace gradring::train
