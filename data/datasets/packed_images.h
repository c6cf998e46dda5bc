// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/datasets/dataset.h"
#include "kernels/base/file.h"

namespace gradring::data {

/// An image that cannot be read.
struct BrokenImage {
  std::uint64_t slot = 0;  ///< its index in the listing
  std::string path;        ///< from the split's folder
  std::string reason;      ///< "cannot be read as a JPEG (Premature end of JPEG file); copy it again"
};

/// Where the first slot begins.
inline constexpr std::uint64_t kPackedStart = 4096;

/// What a file of packed images says of them.
///
/// The file begins with kPackedStart bytes: a magic number and where the facts lie, with their SHA-256. Pixels follow,
/// one byte a channel, in a slot of equal size for each file of the listing, so that threads write them in any order.
/// The slots of broken images are not written. At the end are these facts.
struct PackedFacts {
  std::string source;     ///< the absolute path of the folder that it was made from
  std::string settings;   ///< ImageSettings::text()
  std::string decoders;   ///< decoder_versions() (data/images/image.h)
  std::int64_t size = 0;  ///< height and width in pixels, of three channels
  std::vector<std::string> classes;
  std::vector<std::int32_t> labels;      ///< by slot
  std::vector<BrokenImage> broken;       ///< in the order of their slots
  Sha256 content{};                      ///< stands for the samples (pack_images.h, content_key)
  std::vector<std::uint32_t> checksums;  ///< by slot: CRC-32 of the pixels; 0 for a broken image

  std::uint64_t slot_bytes() const { return static_cast<std::uint64_t>(size * size * 3); }
  /// Where a slot begins in the file; behind the last one, the facts.
  std::uint64_t start_of(std::uint64_t slot) const { return kPackedStart + slot * slot_bytes(); }
  std::uint64_t end() const { return start_of(labels.size()); }
};

/// CRC-32, as zlib's.
std::uint32_t checksum_of(std::span<const std::uint8_t> pixels);

/// The name of a file of packed images, without ".images". Other decoders may decode other pixels of the same content.
std::string packed_key(const Sha256& content, const std::string& decoders);

/// Creates a file; what has its name, such as a link or the rest of an interrupted process, is removed first.
///
/// Errors    std::system_error that names the file.
UniqueFd create_anew(const std::filesystem::path& path);

/// Such a file that is being written.
///
/// Threads   write may be called from any thread.
/// Errors    std::system_error that names the file: the disk is full, or fails.
class PackedFile {
 public:
  /// Creates the file, and reserves space for the slots, so that a disk that is too small is noticed at once. `facts`
  /// must outlive it.
  PackedFile(std::filesystem::path path, const PackedFacts& facts);

  void write(std::span<const std::uint8_t> pixels, std::uint64_t slot) const;
  /// Writes the facts and the start of the file.
  void finish() const;

 private:
  void write_at(std::string_view bytes, std::uint64_t at) const;

  std::filesystem::path path_;
  const PackedFacts& facts_;
  UniqueFd file_;
};

/// Errors    DataError if the file cannot be opened, is of another version or another key, is truncated or damaged (not
///           its pixels: those are not read).
PackedFacts read_packed_facts(const std::filesystem::path& path);

/// The images of such a file that are not broken, in memory that is mapped to it: read when they are used, shared by
/// all processes of a machine, and dropped by the system where memory is scarce. A process that reads a page which the
/// file no longer has ends with exit code 4 and a message that names the file.
///
/// Threads   every member function may be called from any thread.
class PackedImages final : public Dataset {
 public:
  /// Errors    as read_packed_facts; std::system_error if it cannot be mapped.
  explicit PackedImages(const std::filesystem::path& path);
  ~PackedImages() override;
  PackedImages(const PackedImages&) = delete;
  PackedImages& operator=(const PackedImages&) = delete;

  std::string_view name() const override { return "folder"; }
  std::int64_t size() const override { return std::ssize(slots_); }
  kernels::Shape shape() const override { return {facts_.size, facts_.size, 3}; }
  int classes() const override { return static_cast<int>(facts_.classes.size()); }
  /// Errors    DataError if the pixels are damaged: their checksum is compared when they are used first.
  std::span<const std::uint8_t> pixels(std::int64_t index) const override;
  int label(std::int64_t index) const override { return facts_.labels[slot_of(index)]; }
  std::span<const std::string> class_names() const override { return facts_.classes; }
  std::optional<Sha256> known_hash() const override { return facts_.content; }
  const PackedFacts& facts() const { return facts_; }

 private:
  class MappedRange;

  std::size_t slot_of(std::int64_t index) const;
  /// Tells the system that these bytes will be read, and only these.
  void read_ahead(std::span<const std::uint8_t> bytes) const;

  std::filesystem::path path_;
  PackedFacts facts_;
  std::vector<std::uint32_t> slots_;                 // by index
  mutable std::vector<std::atomic<bool>> verified_;  // by slot
  const std::uint8_t* start_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  bool exceeds_memory_ = false;
  std::unique_ptr<MappedRange> range_;
};

}  // namespace gradring::data
