// SPDX-License-Identifier: Apache-2.0
#include "data/fetch/tar_reader.h"

#include <algorithm>

#include "data/files/byte_source.h"

namespace gradring::data {
namespace {

/// A field of a header.
struct Field {
  std::size_t begin;
  std::size_t size;

  std::span<const std::uint8_t> of(std::span<const std::uint8_t> header) const { return header.subspan(begin, size); }
};
constexpr Field kName{0, 100}, kSize{124, 12}, kSum{148, 8}, kType{156, 1}, kMagic{257, 5}, kPrefix{345, 155};

std::string text_of(std::span<const std::uint8_t> field) {
  return {field.begin(), std::find(field.begin(), field.end(), 0)};
}

/// Archives from before POSIX have a zero.
bool is_regular(std::uint8_t type) { return type == '0' || type == 0; }

}  // namespace

TarReader::TarReader(const std::filesystem::path& path) : path_(path), source_(open_plain_or_gzip(path)) {}

std::optional<TarReader::Member> TarReader::next() {
  skip(left_ + padding_);
  left_ = padding_ = 0;
  Block header;
  read_all(header);
  if (std::ranges::all_of(header, [](std::uint8_t byte) { return byte == 0; })) return std::nullopt;
  check_sum(header);
  Member member{.name = text_of(kName.of(header)), .bytes = octal(kSize.of(header))};
  member.is_file = is_regular(header[kType.begin]);
  const bool has_prefix = text_of(kMagic.of(header)) == "ustar";
  if (const std::string prefix = text_of(kPrefix.of(header)); has_prefix && !prefix.empty())
    member.name = prefix + "/" + member.name;
  left_ = member.bytes;
  padding_ = (kBlock - member.bytes % kBlock) % kBlock;
  return member;
}

std::size_t TarReader::read(std::span<std::uint8_t> out) {
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), left_));
  read_all(out.first(count));
  left_ -= count;
  return count;
}

void TarReader::read_all(std::span<std::uint8_t> out) {
  if (source_->read(out) != out.size()) throw DataError(path_, "ends in the middle of the archive", kDownloadAgain);
}

void TarReader::skip(std::uint64_t bytes) {
  std::array<std::uint8_t, 16 * kBlock> unused;
  while (bytes > 0) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, unused.size()));
    read_all(std::span(unused).first(count));
    bytes -= count;
  }
}

/// The sum of all bytes, with the checksum field itself counted as blanks.
void TarReader::check_sum(const Block& header) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const bool in_sum = i >= kSum.begin && i < kSum.begin + kSum.size;
    sum += in_sum ? ' ' : header[i];
  }
  if (sum != octal(kSum.of(header))) throw DataError(path_, "has a missing or damaged tar header", kDownloadAgain);
}

/// Octal digits, surrounded by blanks or terminated by a zero.
std::uint64_t TarReader::octal(std::span<const std::uint8_t> digits) const {
  const std::string text = text_of(digits);
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  std::uint64_t number = 0;
  for (const char c : text.substr(begin, text.find_last_not_of(' ') + 1 - begin)) {
    if (c < '0' || c > '7') throw DataError(path_, "has a tar header with an invalid number", kDownloadAgain);
    number = number << 3 | static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

}  // namespace gradring::data
