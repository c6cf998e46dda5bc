// SPDX-License-Identifier: Apache-2.0
#include "tests/data/support/written_idx.h"

#include <zlib.h>

#include <stdexcept>

namespace gradring::tests {

Bytes idx_bytes(const std::vector<std::uint32_t>& extents, const Bytes& values) {
  Bytes bytes = {0, 0, 8, static_cast<std::uint8_t>(extents.size())};
  for (std::uint32_t extent : extents)
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(extent >> shift));
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

Bytes counting(std::size_t count) {
  Bytes values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::uint8_t>(i % 251);
  return values;
}

Bytes gzipped(const Bytes& plain) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("deflateInit2");
  Bytes packed(deflateBound(&stream, plain.size()));
  stream.next_in = const_cast<Bytef*>(plain.data());  // zlib's signature; it only reads
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("deflate");
  return packed;
}

}  // namespace gradring::tests
