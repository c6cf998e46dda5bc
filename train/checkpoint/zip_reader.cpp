// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <algorithm>

#include "train/checkpoint/error.h"
#include "train/checkpoint/file_io.h"
#include "train/checkpoint/tensor_record.h"
#include "train/checkpoint/zip_archive.h"
#include "train/checkpoint/zip_format.h"

namespace gradring::train {
namespace {

using namespace zip;

constexpr std::uint64_t kLargestDirectory = 4u << 20;
constexpr std::uint64_t kLongestComment = 0xffff;

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& found) {
  throw CheckpointError(path, found, "this is no sound file of torch.save (1.6 or later): save it again");
}

/// The 64-bit values that stand for those of 32 bits that are full, in the order of the format.
class Zip64Values {
 public:
  explicit Zip64Values(std::string_view extra) {
    while (extra.size() >= 4) {
      const std::size_t bytes = u16(extra, 2);
      if (bytes > extra.size() - 4) return;
      if (u16(extra, 0) == kZip64Field) values_ = extra.substr(4, bytes);
      extra.remove_prefix(4 + bytes);
    }
  }

  /// `value`, or the next of the field; false if the field has no more.
  bool widen(std::uint32_t value, std::uint64_t& wide) {
    wide = value;
    if (value != kIn64) return true;
    if (values_.size() < 8) return false;
    wide = u64(values_, 0);
    values_.remove_prefix(8);
    return true;
  }

 private:
  std::string_view values_;
};

}  // namespace

ZipReader::ZipReader(const InputFile& file, std::filesystem::path path) : file_(file), path_(std::move(path)) {
  const Directory directory = find_directory();
  const std::string text = read_text(file_, path_, directory.begin, directory.bytes);
  for (std::string_view rest = text; !rest.empty();) {
    entries_.push_back(parse_entry(rest));
    find_bytes(entries_.back());
    if (!by_name_.emplace(entries_.back().name, entries_.size() - 1).second)
      refuse(path_, "has two entries called " + in_quotes(entries_.back().name));
  }
  if (entries_.size() != directory.entries) refuse(path_, "has a directory of another length than it says");
  check_apart(directory.begin);
}

/// Searches the end record from the back, behind which only a comment of the length that it says may lie.
ZipReader::Directory ZipReader::find_directory() const {
  const std::uint64_t tail_bytes = std::min<std::uint64_t>(file_.size(), kEndBytes + kLongestComment);
  const std::string tail = read_text(file_, path_, file_.size() - tail_bytes, tail_bytes);
  for (std::size_t at = tail.size() < kEndBytes ? tail.npos : tail.size() - kEndBytes; at != tail.npos;
       at = at == 0 ? tail.npos : tail.rfind(kEnd, at - 1)) {
    if (tail.compare(at, kEnd.size(), kEnd) != 0 || u16(tail, at + 20) != tail.size() - at - kEndBytes) continue;
    const std::uint64_t end = file_.size() - tail_bytes + at;
    Directory directory{.begin = u32(tail, at + 16), .bytes = u32(tail, at + 12), .entries = u16(tail, at + 10)};
    const bool has_zip64 =
        at >= kEnd64LocatorBytes && tail.compare(at - kEnd64LocatorBytes, kEnd64Locator.size(), kEnd64Locator) == 0;
    if (has_zip64) directory = find_zip64_directory(end - kEnd64LocatorBytes);
    if (directory.begin > end || directory.bytes > end - directory.begin)
      refuse(path_, "has a directory that reaches beyond its end");
    if (directory.bytes > kLargestDirectory)
      refuse(path_, "has a directory of " + std::to_string(directory.bytes) + " bytes");
    return directory;
  }
  refuse(path_, "is no zip archive, or is cut short");
}

ZipReader::Directory ZipReader::find_zip64_directory(std::uint64_t locator) const {
  const std::uint64_t at = u64(read_text(file_, path_, locator, kEnd64LocatorBytes), 8);
  if (at > locator || locator - at < kEnd64Bytes) refuse(path_, "has a zip64 record that reaches beyond its end");
  const std::string record = read_text(file_, path_, at, kEnd64Bytes);
  if (!record.starts_with(kEnd64)) refuse(path_, "has no zip64 record where one should be");
  return {.begin = u64(record, 48), .bytes = u64(record, 40), .entries = u64(record, 32)};
}

ZipEntry ZipReader::parse_entry(std::string_view& rest) const {
  if (rest.size() < kDirectoryEntryBytes || !rest.starts_with(kDirectoryEntry)) refuse(path_, "has a broken directory");
  const std::size_t name_bytes = u16(rest, 28), extra_bytes = u16(rest, 30), comment_bytes = u16(rest, 32);
  const std::size_t entry_bytes = kDirectoryEntryBytes + name_bytes + extra_bytes + comment_bytes;
  if (rest.size() < entry_bytes) refuse(path_, "has a broken directory");
  ZipEntry entry{.name = std::string(rest.substr(kDirectoryEntryBytes, name_bytes)), .crc32 = u32(rest, 16)};
  if (u16(rest, 8) & 1) refuse(path_, "has the encrypted entry " + in_quotes(entry.name));
  if (u16(rest, 10) != 0)
    refuse(path_, "has the compressed entry " + in_quotes(entry.name) + ", which torch.save never writes");
  Zip64Values wide(rest.substr(kDirectoryEntryBytes + name_bytes, extra_bytes));
  std::uint64_t stored_bytes = 0;
  if (!wide.widen(u32(rest, 24), entry.bytes) || !wide.widen(u32(rest, 20), stored_bytes) ||
      !wide.widen(u32(rest, 42), entry.header) || stored_bytes != entry.bytes)
    refuse(path_, "says no clear size of " + in_quotes(entry.name));
  rest.remove_prefix(entry_bytes);
  return entry;
}

/// Reads the local header, whose name must be the directory's: two readers must not see two files.
void ZipReader::find_bytes(ZipEntry& entry) const {
  const std::uint64_t size = file_.size();
  if (size < kLocalHeaderBytes || entry.header > size - kLocalHeaderBytes)
    refuse(path_, "has the entry " + in_quotes(entry.name) + " beyond its end");
  const std::string header = read_text(file_, path_, entry.header, kLocalHeaderBytes);
  const std::size_t name_bytes = u16(header, 26), extra_bytes = u16(header, 28);
  entry.begin = entry.header + kLocalHeaderBytes + name_bytes + extra_bytes;
  if (!header.starts_with(kLocalHeader) || u16(header, 8) != 0 || entry.begin > size ||
      entry.bytes > size - entry.begin)
    refuse(path_, "has a broken entry " + in_quotes(entry.name));
  if (read_text(file_, path_, entry.header + kLocalHeaderBytes, name_bytes) != entry.name)
    refuse(path_, "calls the entry " + in_quotes(entry.name) + " otherwise in another place");
}

void ZipReader::check_apart(std::uint64_t directory) const {
  std::vector<const ZipEntry*> order;
  for (const ZipEntry& entry : entries_) order.push_back(&entry);
  std::ranges::sort(order, {}, [](const ZipEntry* entry) { return entry->header; });
  std::uint64_t end = 0;
  for (const ZipEntry* entry : order) {
    if (entry->header < end) refuse(path_, "lets the entry " + in_quotes(entry->name) + " overlap another");
    end = entry->begin + entry->bytes;
  }
  if (end > directory) refuse(path_, "lets its directory overlap its entries");
}

const ZipEntry* ZipReader::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

std::vector<std::byte> ZipReader::read(const ZipEntry& entry) const {
  std::vector<std::byte> bytes(entry.bytes);
  read_exactly(file_, path_, entry.begin, bytes);
  if (crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()) != entry.crc32)
    refuse(path_, "has damaged bytes in " + in_quotes(entry.name) + " (the checksum differs)");
  return bytes;
}

}  // namespace gradring::train
