// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include "kernels/runtime/error.h"
#include "train/checkpoint/file_io.h"
#include "train/checkpoint/zip_archive.h"
#include "train/checkpoint/zip_format.h"

namespace gradring::train {
namespace {

using namespace zip;

constexpr std::uint64_t kAlignment = 64;
constexpr std::uint16_t kPaddingField = 0x4246;  // "FB", as torch.save pads
constexpr std::uint16_t kVersion = 20;
constexpr std::uint16_t kFirstDay = 0x21;  // 1980-01-01: the same tensors make the same bytes at any time

template <class T>
void put(std::string& text, T value) {
  put_little_endian(text, value);
}

/// What a local header and the directory's entry have in common: from the version needed to the length of the name.
std::string common_fields(std::string_view name, std::span<const std::byte> bytes) {
  std::string text;
  put(text, kVersion);
  put<std::uint16_t>(text, 0);  // flags
  put<std::uint16_t>(text, 0);  // stored
  put<std::uint16_t>(text, 0);  // midnight
  put(text, kFirstDay);
  put(text, static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size())));
  put(text, static_cast<std::uint32_t>(bytes.size()));
  put(text, static_cast<std::uint32_t>(bytes.size()));
  put(text, static_cast<std::uint16_t>(name.size()));
  return text;
}

/// A field of the size that brings what follows `offset` to a multiple of 64.
std::string padding_after(std::uint64_t offset) {
  constexpr std::uint64_t kFieldHeader = 4;
  const std::uint64_t missing = (kAlignment - (offset + kFieldHeader) % kAlignment) % kAlignment;
  std::string field;
  put(field, kPaddingField);
  put(field, static_cast<std::uint16_t>(missing));
  return field + std::string(missing, 'Z');
}

}  // namespace

void ZipWriter::write(std::string_view text) {
  write_all(file_, path_, bytes_of(text));
  offset_ += text.size();
}

void ZipWriter::add(std::string_view name, std::span<const std::byte> bytes) {
  check(name.size() < 0xffff && entries_ < 0xfffe && bytes.size() < kIn64 - offset_ - 0x20000,
        "more than 4 GiB, or than 65,534 entries, do not fit a zip archive without zip64: save them as safetensors");
  const std::string common = common_fields(name, bytes);
  const std::string padding = padding_after(offset_ + kLocalHeaderBytes + name.size());

  directory_ += kDirectoryEntry;
  put(directory_, kVersion);
  directory_ += common;
  put<std::uint16_t>(directory_, 0);  // extra fields
  put<std::uint16_t>(directory_, 0);  // comment
  put<std::uint16_t>(directory_, 0);  // disk
  put<std::uint16_t>(directory_, 0);  // attributes
  put<std::uint32_t>(directory_, 0);
  put(directory_, static_cast<std::uint32_t>(offset_));
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
  put<std::uint32_t>(end, 0);  // disks
  put(end, static_cast<std::uint16_t>(entries_));
  put(end, static_cast<std::uint16_t>(entries_));
  put(end, static_cast<std::uint32_t>(directory_.size()));
  put(end, static_cast<std::uint32_t>(offset_));
  put<std::uint16_t>(end, 0);  // comment
  write(directory_ + end);
}

}  // namespace gradring::train
