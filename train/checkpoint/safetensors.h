// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "train/checkpoint/file_system.h"
#include "train/checkpoint/safetensors_header.h"
#include "train/checkpoint/tensor_record.h"

namespace gradring::train {

/// A safetensors file, read strictly: its header at once, its tensors one by one.
///
///   | 8 bytes: N, little-endian | N bytes: the header, JSON | the tensors' bytes, without holes |
///
/// Errors    CheckpointError, naming the file, what was found and what to do. Refused are, beside what JSON refuses: a
///           header above kLargestHeaderBytes or behind the end of the file; one that does not begin with '{', or is
///           padded with anything but spaces; a key that stands twice, at any level; control characters in a name; an
///           entry that has not exactly dtype, shape and data_offsets; numbers that are not whole or not below 2^48;
///           an unknown type; a shape that does not agree with the offsets; a hole, an overlap, bytes behind the end.
/// Cost      what a header costs in memory is bounded (see parse_safetensors_header), whatever it says.
/// Threads   any, at the same time.
/// Source    the safetensors format and its reference implementation; the audit of 2023 (TOB-SFTN).
/// Example   tests/train/checkpoint/safetensors_test.cpp
class SafetensorsReader {
 public:
  SafetensorsReader(std::unique_ptr<InputFile> file, std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  /// In the order of their bytes in the file.
  const std::vector<StoredTensor>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  /// All that lies before the first tensor: N and the header.
  const std::string& head() const { return head_; }

  /// Reads the bytes of one tensor.
  TensorRecord read(const StoredTensor& tensor) const;

 private:
  std::unique_ptr<InputFile> file_;
  std::filesystem::path path_;
  std::string head_;
  SafetensorsHeader header_;
};

/// All tensors of a file, in the order of their bytes.
std::vector<TensorRecord> read_safetensors(FileSystem& files, const std::filesystem::path& path);

/// The head of a file that holds `tensors`, in the order in which write_safetensors writes their bytes: types of large
/// elements first, then by name; padded so that every tensor lies at a multiple of its element's size. The same tensors
/// make the same bytes, in whatever order they come.
///
/// Errors    InvalidArgument if two tensors have one name, a name is not UTF-8 or has control characters, or a tensor's
///           bytes do not fit its type and shape.
struct SafetensorsPlan {
  std::vector<const TensorRecord*> order;
  std::string head;
};
SafetensorsPlan plan_safetensors(std::span<const TensorRecord> tensors,
                                 const std::map<std::string, std::string>& metadata = {});

/// Writes a new file, on the disk when this returns.
///
/// Errors    FileError; the file may be there in part.
void write_safetensors(FileSystem& files, const std::filesystem::path& path, const SafetensorsPlan& plan);

}  // namespace gradring::train
