// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "train/records/checkpoint/file_system.h"
#include "train/records/checkpoint/pickle.h"

namespace gradring::train {

/// The records of a zip archive of torch.save.
namespace pt {
constexpr std::string_view kPickle = "data.pkl";
constexpr std::string_view kByteOrder = "byteorder";
constexpr std::string_view kVersion = "3\n";
}  // namespace pt

/// How a pickle names a storage: ('storage', torch.FloatStorage, '0', 'cpu', 288).
struct PtStorage {
  std::string_view type;  ///< "torch.FloatStorage"
  std::string_view key;
  std::uint64_t elements = 0;  ///< of `type`; bytes of an untyped storage

  /// Bytes of an element; nothing if the type is unknown.
  std::optional<std::uint64_t> element_bytes() const;
  bool is_untyped() const;
};

/// The storage that a value of the pickle names; nothing if it names none.
std::optional<PtStorage> storage_in(const Pickle& pickle, const PickleValue& value);

/// What is in a file of torch.save: a pickle, and the bytes of the storages that it names.
class PtRecords {
 public:
  virtual ~PtRecords() = default;

  const Pickle& pickle() const { return pickle_; }
  /// Whether the elements of the storages have their most significant byte first.
  bool is_big_endian() const { return is_big_endian_; }
  /// The bytes of a storage; nothing if it is missing.
  ///
  /// Errors    CheckpointError if they are damaged; MemoryError.
  virtual std::optional<std::vector<std::byte>> storage(std::string_view key) const = 0;

 protected:
  Pickle pickle_;
  bool is_big_endian_ = false;
};

/// Whether a file begins as torch.save's before PyTorch 1.6, or with _use_new_zipfile_serialization=False.
bool is_legacy_pt(std::string_view start);

/// Opens a file of torch.save: a zip archive, or, in the legacy format, a sequence:
///
///   | pickles: the magic number, the version, the byte order, the object, the keys of its storages | for each key: 8
///   bytes: elements, little-endian; the elements |
///
/// `file` must outlive the result.
///
/// Errors    CheckpointError, those of ZipReader and read_pickle; an archive of something else.
/// Source    _save, _legacy_save and _legacy_load of torch/serialization.py.
std::unique_ptr<PtRecords> open_pt_records(const InputFile& file, const std::filesystem::path& path);

}  // namespace gradring::train
