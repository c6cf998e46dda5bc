// SPDX-License-Identifier: Apache-2.0
#include "tests/data/support/written_png.h"

#include <zlib.h>

#include <algorithm>

namespace gradring::tests {
namespace {

void append(Bytes& to, const Bytes& from) { to.insert(to.end(), from.begin(), from.end()); }

Bytes big_endian(std::uint32_t value) {
  return {static_cast<std::uint8_t>(value >> 24), static_cast<std::uint8_t>(value >> 16),
          static_cast<std::uint8_t>(value >> 8), static_cast<std::uint8_t>(value)};
}

Bytes deflated(const Bytes& plain) {
  uLongf size = ::compressBound(plain.size());
  Bytes packed(size);
  ::compress(packed.data(), &size, plain.data(), plain.size());
  packed.resize(size);
  return packed;
}

}  // namespace

Bytes png_chunk(const std::string& type, const Bytes& data) {
  Bytes body(type.begin(), type.end());
  append(body, data);
  Bytes chunk = big_endian(static_cast<std::uint32_t>(data.size()));
  append(chunk, body);
  append(chunk, big_endian(static_cast<std::uint32_t>(::crc32(0, body.data(), static_cast<uInt>(body.size())))));
  return chunk;
}

std::size_t WrittenPng::row_bytes() const {
  constexpr std::size_t kChannels[] = {1, 0, 3, 1, 2, 0, 4};
  return (width * kChannels[colour] * bits + 7) / 8;
}

Bytes WrittenPng::bytes() const {
  Bytes head = big_endian(width);
  append(head, big_endian(height));
  append(head, {bits, colour, 0, 0, 0});
  Bytes filtered;
  for (std::size_t begin = 0; begin < rows.size(); begin += row_bytes()) {
    filtered.push_back(0);
    const std::size_t end = std::min(begin + row_bytes(), rows.size());
    filtered.insert(filtered.end(), rows.begin() + static_cast<std::ptrdiff_t>(begin),
                    rows.begin() + static_cast<std::ptrdiff_t>(end));
  }
  Bytes file = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  append(file, png_chunk("IHDR", head));
  if (!palette.empty()) append(file, png_chunk("PLTE", palette));
  if (!transparency.empty()) append(file, png_chunk("tRNS", transparency));
  append(file, png_chunk("IDAT", deflated(filtered)));
  append(file, png_chunk("IEND", {}));
  return file;
}

}  // namespace gradring::tests
