// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/npy_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "data/files/mistaken_file.h"

namespace gradring::data {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little);

constexpr const char* kSaveAgain = "save it by numpy.save";
constexpr std::size_t kPieceBytes = 1 << 20;

/// The bytes of a value of a type of numbers: 8 for "<f8"; 0 for another type.
std::size_t value_bytes(std::string_view descr) {
  if (descr.size() != 3 || std::string_view("<>|=").find(descr[0]) == descr.npos) return 0;
  const std::string_view type = descr.substr(1);
  for (const std::string_view known : {"u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"})
    if (type == known) return static_cast<std::size_t>(type[1] - '0');
  return 0;
}

template <class Value>
Value value_at(const std::uint8_t* bytes, bool big_endian) {
  std::array<std::uint8_t, sizeof(Value)> copy;
  std::memcpy(copy.data(), bytes, copy.size());
  if (big_endian) std::ranges::reverse(copy);
  return std::bit_cast<Value>(copy);
}

/// An integer of type "u1" to "i8"; at most the largest int64.
std::int64_t integer_at(std::string_view type, const std::uint8_t* bytes, bool big_endian) {
  if (type == "u1") return *bytes;
  if (type == "i1") return value_at<std::int8_t>(bytes, big_endian);
  if (type == "u2") return value_at<std::uint16_t>(bytes, big_endian);
  if (type == "i2") return value_at<std::int16_t>(bytes, big_endian);
  if (type == "u4") return value_at<std::uint32_t>(bytes, big_endian);
  if (type == "i4") return value_at<std::int32_t>(bytes, big_endian);
  if (type == "i8") return value_at<std::int64_t>(bytes, big_endian);
  constexpr auto kMost = std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  return static_cast<std::int64_t>(std::min(value_at<std::uint64_t>(bytes, big_endian), kMost));
}

std::string bytes_text(std::uint64_t bytes) { return std::to_string(bytes) + " byte" + (bytes == 1 ? "" : "s"); }

}  // namespace

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "(";
  for (const std::int64_t extent : shape) text += std::to_string(extent) + ", ";
  if (shape.size() == 1) text.pop_back();  // "(3,)"
  if (shape.size() > 1) text.resize(text.size() - 2);
  return text + ")";
}

NpyFile::NpyFile(const fs::path& path) : path_(path), source_(open_plain(path)) { read_header(); }

void NpyFile::fail(const std::string& found, const std::string& advice) const { throw DataError(path_, found, advice); }

void NpyFile::read_header() {
  const std::uint64_t file_bytes = source_->most_bytes();
  if (file_bytes == 0) fail("is empty", kSaveAgain);
  std::array<std::uint8_t, kStartBytes> start{};
  const std::size_t count = source_->read(std::span(start).first(kNpyVersionEnd));
  const std::string_view text(reinterpret_cast<const char*>(start.data()), count);
  if (!text.starts_with(kNpyMagic)) {
    if (text.starts_with("PK")) fail("is a .npz archive", "save each of its arrays by numpy.save as a .npy file");
    const std::size_t more = source_->read(std::span(start).subspan(count));
    if (const auto mistaken = find_mistaken_file(std::string(start.begin(), start.begin() + count + more)))
      fail(std::string(mistaken->what), std::string(mistaken->advice));
    fail("is not a .npy file: it does not begin with the magic of one", kSaveAgain);
  }
  if (count < kNpyVersionEnd) fail("ends within its header", kSaveAgain);
  const int version = start[kNpyMagic.size()];
  if (version < 1 || version > 3)
    fail("has version " + std::to_string(version) + " of the format, expected 1 to 3", kSaveAgain);
  const std::size_t field_bytes = version == 1 ? 2 : 4;
  std::array<std::uint8_t, 4> field{};
  if (source_->read(std::span(field).first(field_bytes)) != field_bytes) fail("ends within its header", kSaveAgain);
  const std::size_t header_bytes = std::bit_cast<std::uint32_t>(field);
  if (header_bytes > kLargestNpyHeader)
    fail("has a header of " + bytes_text(header_bytes) + ", expected at most 64 KiB", kSaveAgain);
  std::vector<std::uint8_t> header(header_bytes);
  if (source_->read(header) != header_bytes) fail("ends within its header", kSaveAgain);
  auto parsed = parse_npy_header(std::string_view(reinterpret_cast<const char*>(header.data()), header_bytes));
  if (!parsed) fail("has a header that is not NumPy's", kSaveAgain);
  header_ = *std::move(parsed);
  value_bytes_ = value_bytes(header_.descr);
  if (header_.descr.find('O') != std::string::npos)
    fail("holds Python objects, such as images of several sizes", "save one array of numbers: numpy.stack(images)");
  if (value_bytes_ == 0)
    fail("holds values of type " + header_.descr.substr(0, kStartBytes) + ", which are no numbers that can be read",
         "convert them with astype, and save them by numpy.save");
  if (header_.fortran_order && header_.shape.size() > 1)
    fail("is in column-major order", "save a copy in row-major order: numpy.ascontiguousarray(array)");
  count_ = 1;
  for (const std::int64_t extent : header_.shape)
    if (__builtin_mul_overflow(count_, extent, &count_))
      fail("has the shape " + shape_text(header_.shape) + ", more values than a file can hold", kSaveAgain);
  const std::uint64_t here = file_bytes - kNpyVersionEnd - field_bytes - header_bytes;
  if (here / value_bytes_ != static_cast<std::uint64_t>(count_) || here % value_bytes_ != 0)
    fail("holds " + bytes_text(here) + " of values, which is not " + shape_text(header_.shape) + " of type " +
             header_.descr + ": it is " +
             (here / value_bytes_ < static_cast<std::uint64_t>(count_) ? "truncated" : "too long"),
         "copy or save it again");
}

template <class Take>
void NpyFile::read_pieces(Take take) {
  std::vector<std::uint8_t> piece(std::min(kPieceBytes, static_cast<std::size_t>(count_) * value_bytes_));
  for (std::int64_t left = count_; left > 0;) {
    const std::size_t bytes = std::min(piece.size(), static_cast<std::size_t>(left) * value_bytes_);
    const std::span part = std::span(piece).first(bytes);
    if (source_->read(part) != bytes) fail("became shorter while it was read", "leave it as it is during a run");
    take(std::span<const std::uint8_t>(part));
    left -= static_cast<std::int64_t>(bytes / value_bytes_);
  }
}

std::vector<std::uint8_t> NpyFile::read_pixels() {
  const std::string_view type = std::string_view(header_.descr).substr(1);
  if (type != "u1" && type != "f4" && type != "f8")
    fail("holds pixels of type " + header_.descr + ", expected uint8, or float32 or float64 from 0 to 1",
         type[1] == '2' ? "scale them to bytes; if they use all 16 bits, (images >> 8).astype(numpy.uint8)"
                        : "save bytes; if all are from 0 to 255, images.astype(numpy.uint8)");
  require_memory(path_, "its " + std::to_string(count_) + " pixels", static_cast<std::uint64_t>(count_));
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(count_));
  if (type == "u1") {
    if (source_->read(pixels) != pixels.size())
      fail("became shorter while it was read", "leave it as it is during a run");
    return pixels;
  }
  const bool big_endian = header_.descr[0] == '>';
  std::size_t filled = 0;
  read_pieces([&](std::span<const std::uint8_t> piece) {
    for (std::size_t i = 0; i < piece.size(); i += value_bytes_, ++filled) {
      const double value =
          type == "f4" ? double{value_at<float>(&piece[i], big_endian)} : value_at<double>(&piece[i], big_endian);
      if (!(value >= 0 && value <= 1)) {
        const auto values_of_sample = static_cast<std::size_t>(count_ / std::max<std::int64_t>(header_.shape[0], 1));
        fail("has the pixel " + std::to_string(value) + " in sample " + std::to_string(filled / values_of_sample) +
                 ", expected floats from 0 to 1",
             "scale them to 0 to 1, without normalization, or save bytes from 0 to 255 as uint8");
      }
      pixels[filled] = static_cast<std::uint8_t>(std::lround(255 * value));
    }
  });
  return pixels;
}

std::vector<std::int32_t> NpyFile::read_labels() {
  const std::string_view type = std::string_view(header_.descr).substr(1);
  if (type[0] == 'f')
    fail("holds labels of type " + header_.descr + ", expected integers", "save them as labels.astype(numpy.int64)");
  require_memory(path_, "its " + std::to_string(count_) + " labels", static_cast<std::uint64_t>(count_) * 4);
  std::vector<std::int32_t> labels;
  labels.reserve(static_cast<std::size_t>(count_));
  const bool big_endian = header_.descr[0] == '>';
  read_pieces([&](std::span<const std::uint8_t> piece) {
    for (std::size_t i = 0; i < piece.size(); i += value_bytes_) {
      const std::int64_t label = integer_at(type, &piece[i], big_endian);
      if (label < 0 || label > std::numeric_limits<std::int32_t>::max())
        fail("has the label " + std::to_string(label) + " in sample " + std::to_string(labels.size()) +
                 ", expected classes numbered from 0",
             "number the classes 0, 1, ...");
      labels.push_back(static_cast<std::int32_t>(label));
    }
  });
  return labels;
}

}  // namespace gradring::data
