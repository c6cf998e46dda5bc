// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/zip_archive.h"

#include <zlib.h>

#include <algorithm>

#include "kernels/base/error.h"
#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/tensor_record.h"

namespace gradring::train {
namespace {

using namespace zip;

constexpr std::uint32_t kIn64 = 0xffffffff;  // the value is in the zip64 field
constexpr std::uint16_t kZip64Field = 1;
constexpr std::uint64_t kLargestDirectory = 4u << 20;
constexpr std::uint64_t kLongestComment = 0xffff;

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& found) {
  throw CheckpointError(path, "is not a valid file of torch.save (1.6 or later): " + found, "save it again");
}

std::uint16_t u16_at(std::string_view text, std::size_t at) { return get_little_endian<std::uint16_t>(text, at); }
std::uint32_t u32_at(std::string_view text, std::size_t at) { return get_little_endian<std::uint32_t>(text, at); }
std::uint64_t u64_at(std::string_view text, std::size_t at) { return get_little_endian<std::uint64_t>(text, at); }

std::uint32_t crc32_of(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

/// The zip64 extra field: 64-bit values that replace 32-bit values of kIn64, in the order of the format.
class Zip64Values {
 public:
  explicit Zip64Values(std::string_view extra) {
    while (extra.size() >= 4) {
      const std::size_t bytes = u16_at(extra, 2);
      if (bytes > extra.size() - 4) return;
      if (u16_at(extra, 0) == kZip64Field) values_ = extra.substr(4, bytes);
      extra.remove_prefix(4 + bytes);
    }
  }

  /// Sets `wide` to `value`, or to the next value of the field; returns false if the field has no more.
  bool widen(std::uint32_t value, std::uint64_t& wide) {
    wide = value;
    if (value != kIn64) return true;
    if (values_.size() < 8) return false;
    wide = u64_at(values_, 0);
    values_.remove_prefix(8);
    return true;
  }

 private:
  std::string_view values_;
};

constexpr std::uint64_t kAlignment = 64;
constexpr std::uint16_t kPaddingField = 0x4246;  // "FB", as torch.save uses
constexpr std::uint16_t kVersion = 20;
constexpr std::uint16_t kFirstDay = 0x21;  // 1980-01-01: the bytes do not depend on the time

/// Appends the fields of a record, little-endian.
template <std::unsigned_integral... Fields>
void put(std::string& record, Fields... fields) {
  (put_little_endian(record, fields), ...);
}

/// The fields that a local header and a directory entry share: from the version needed to the length of the name.
std::string common_fields(std::string_view name, std::span<const std::byte> bytes) {
  constexpr std::uint16_t kFlags = 0, kStored = 0, kMidnight = 0;
  const auto size = static_cast<std::uint32_t>(bytes.size());
  std::string text;
  put(text, kVersion, kFlags, kStored, kMidnight, kFirstDay, crc32_of(bytes), size, size,
      static_cast<std::uint16_t>(name.size()));
  return text;
}

/// An extra field that aligns the bytes after it to 64.
std::string padding_after(std::uint64_t offset) {
  constexpr std::uint64_t kFieldHeader = 4;
  const std::uint64_t missing = (kAlignment - (offset + kFieldHeader) % kAlignment) % kAlignment;
  std::string field;
  put(field, kPaddingField, static_cast<std::uint16_t>(missing));
  return field + std::string(missing, 'Z');
}

}  // namespace

ZipReader::ZipReader(const InputFile& file, std::filesystem::path path) : file_(file), path_(std::move(path)) {
  const Directory directory = find_directory();
  const std::string text = read_text(file_, path_, directory.begin, directory.bytes);
  for (std::string_view rest = text; !rest.empty();) {
    entries_.push_back(parse_entry(rest));
    find_bytes(entries_.back());
    if (!by_name_.emplace(entries_.back().name, entries_.size() - 1).second)
      refuse(path_, "it has two entries named " + in_quotes(entries_.back().name));
  }
  if (entries_.size() != directory.entries)
    refuse(path_, "its directory has " + std::to_string(entries_.size()) + " entries, its end record says " +
                      std::to_string(directory.entries));
  has_checksums_ = std::ranges::any_of(entries_, [](const ZipEntry& entry) { return entry.crc32 != 0; });
  check_overlaps(directory.begin);
}

/// Searches the end record from the back. Only a comment of the recorded length may follow it.
ZipReader::Directory ZipReader::find_directory() const {
  const std::uint64_t tail_bytes = std::min<std::uint64_t>(file_.size(), kEndBytes + kLongestComment);
  const std::string tail = read_text(file_, path_, file_.size() - tail_bytes, tail_bytes);
  for (std::size_t at = tail.size() < kEndBytes ? tail.npos : tail.size() - kEndBytes; at != tail.npos;
       at = at == 0 ? tail.npos : tail.rfind(kEnd, at - 1)) {
    if (tail.compare(at, kEnd.size(), kEnd) != 0 || u16_at(tail, at + 20) != tail.size() - at - kEndBytes) continue;
    const std::uint64_t end = file_.size() - tail_bytes + at;
    Directory directory{
        .begin = u32_at(tail, at + 16), .bytes = u32_at(tail, at + 12), .entries = u16_at(tail, at + 10)};
    const bool has_zip64 =
        at >= kEnd64LocatorBytes && tail.compare(at - kEnd64LocatorBytes, kEnd64Locator.size(), kEnd64Locator) == 0;
    if (has_zip64) directory = find_zip64_directory(end - kEnd64LocatorBytes);
    if (directory.begin > end || directory.bytes > end - directory.begin)
      refuse(path_, "its directory reaches beyond its end");
    if (directory.bytes > kLargestDirectory)
      refuse(path_, "its directory has " + std::to_string(directory.bytes) + " bytes, at most 4 MiB are supported");
    return directory;
  }
  refuse(path_, "it is not a zip archive, or truncated");
}

ZipReader::Directory ZipReader::find_zip64_directory(std::uint64_t locator) const {
  const std::uint64_t at = u64_at(read_text(file_, path_, locator, kEnd64LocatorBytes), 8);
  if (at > locator || locator - at < kEnd64Bytes) refuse(path_, "its zip64 record reaches beyond its end");
  const std::string record = read_text(file_, path_, at, kEnd64Bytes);
  if (!record.starts_with(kEnd64)) refuse(path_, "its zip64 record is missing");
  return {.begin = u64_at(record, 48), .bytes = u64_at(record, 40), .entries = u64_at(record, 32)};
}

ZipEntry ZipReader::parse_entry(std::string_view& rest) const {
  if (rest.size() < kDirectoryEntryBytes || !rest.starts_with(kDirectoryEntry))
    refuse(path_, "its directory is invalid");
  const std::size_t name_bytes = u16_at(rest, 28), extra_bytes = u16_at(rest, 30), comment_bytes = u16_at(rest, 32);
  const std::size_t entry_bytes = kDirectoryEntryBytes + name_bytes + extra_bytes + comment_bytes;
  if (rest.size() < entry_bytes) refuse(path_, "its directory is invalid");
  ZipEntry entry{.name = std::string(rest.substr(kDirectoryEntryBytes, name_bytes)), .crc32 = u32_at(rest, 16)};
  if (u16_at(rest, 8) & 1) refuse(path_, "its entry " + in_quotes(entry.name) + " is encrypted");
  entry.compressed = u16_at(rest, 10) != 0;
  Zip64Values wide(rest.substr(kDirectoryEntryBytes + name_bytes, extra_bytes));
  std::uint64_t original_bytes = 0;
  if (!wide.widen(u32_at(rest, 24), original_bytes) || !wide.widen(u32_at(rest, 20), entry.bytes) ||
      !wide.widen(u32_at(rest, 42), entry.header) || (!entry.compressed && original_bytes != entry.bytes))
    refuse(path_, "its directory contradicts itself about the size of " + in_quotes(entry.name));
  rest.remove_prefix(entry_bytes);
  return entry;
}

/// Reads the local header. Its name must equal that of the directory, so that all readers see the same files.
void ZipReader::find_bytes(ZipEntry& entry) const {
  const std::uint64_t size = file_.size();
  if (size < kLocalHeaderBytes || entry.header > size - kLocalHeaderBytes)
    refuse(path_, "its entry " + in_quotes(entry.name) + " lies beyond its end");
  const std::string header = read_text(file_, path_, entry.header, kLocalHeaderBytes);
  const std::size_t name_bytes = u16_at(header, 26), extra_bytes = u16_at(header, 28);
  entry.begin = entry.header + kLocalHeaderBytes + name_bytes + extra_bytes;
  entry.compressed = entry.compressed || u16_at(header, 8) != 0;
  if (!header.starts_with(kLocalHeader) || entry.begin > size || entry.bytes > size - entry.begin)
    refuse(path_, "its entry " + in_quotes(entry.name) + " is invalid");
  if (read_text(file_, path_, entry.header + kLocalHeaderBytes, name_bytes) != entry.name)
    refuse(path_, "its entry " + in_quotes(entry.name) + " has another name in its local header");
}

void ZipReader::check_overlaps(std::uint64_t directory) const {
  std::vector<const ZipEntry*> order;
  for (const ZipEntry& entry : entries_) order.push_back(&entry);
  std::ranges::sort(order, {}, [](const ZipEntry* entry) { return entry->header; });
  std::uint64_t end = 0;
  for (const ZipEntry* entry : order) {
    if (entry->header < end) refuse(path_, "its entry " + in_quotes(entry->name) + " overlaps another");
    end = entry->begin + entry->bytes;
  }
  if (end > directory) refuse(path_, "its directory overlaps its entries");
}

const ZipEntry* ZipReader::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

std::vector<std::byte> ZipReader::read(const ZipEntry& entry) const {
  if (entry.compressed) refuse(path_, "its entry " + in_quotes(entry.name) + " is compressed");
  std::vector<std::byte> bytes = read_bytes(file_, path_, entry.begin, entry.bytes);
  if (has_checksums_ && crc32_of(bytes) != entry.crc32)
    refuse(path_, "its entry " + in_quotes(entry.name) + " does not match its CRC-32");
  return bytes;
}

void ZipWriter::write(std::string_view text) {
  write_all(file_, path_, bytes_of(text));
  offset_ += text.size();
}

void ZipWriter::add(std::string_view name, std::span<const std::byte> bytes) {
  check(name.size() < 0xffff && entries_ < 0xfffe && bytes.size() < kIn64 - offset_ - 0x20000,
        "a .pt file holds at most 4 GiB and 65,534 entries: use safetensors");
  const std::string common = common_fields(name, bytes);
  const std::string padding = padding_after(offset_ + kLocalHeaderBytes + name.size());

  constexpr std::uint16_t kNoExtraField = 0, kNoComment = 0, kDisk = 0, kAttributes = 0;
  constexpr std::uint32_t kExternalAttributes = 0;
  directory_ += kDirectoryEntry;
  put(directory_, kVersion);
  directory_ += common;
  put(directory_, kNoExtraField, kNoComment, kDisk, kAttributes, kExternalAttributes,
      static_cast<std::uint32_t>(offset_));
  directory_ += name;
  ++entries_;

  std::string header(kLocalHeader);
  header += common;
  put(header, static_cast<std::uint16_t>(padding.size()));
  write(header + std::string(name) + padding);
  write_all(file_, path_, bytes);
  offset_ += bytes.size();
}

void ZipWriter::finish() {
  std::string end(kEnd);
  constexpr std::uint16_t kDisk = 0, kFirstDisk = 0, kNoComment = 0;
  const auto entries = static_cast<std::uint16_t>(entries_);
  put(end, kDisk, kFirstDisk, entries, entries, static_cast<std::uint32_t>(directory_.size()),
      static_cast<std::uint32_t>(offset_), kNoComment);
  write(directory_ + end);
}

}  // namespace gradring::train
