// SPDX-License-Identifier: Apache-2.0
#include "train/records/trace/gzip_stream.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace gradring::train {

struct GzipStream::State {
  z_stream stream{};
  std::array<char, 64 * 1024> out{};
};

GzipStream::GzipStream(Sink sink) : sink_(std::move(sink)), state_(std::make_unique<State>()) {
  constexpr int kGzip = 15 + 16;  // the largest window, and a gzip header
  constexpr int kMemory = 8;      // zlib's default
  if (::deflateInit2(&state_->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
}

GzipStream::~GzipStream() { ::deflateEnd(&state_->stream); }

void GzipStream::write(std::string_view part) {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // zlib counts in 32 bits
  while (!part.empty()) {
    const std::size_t bytes = std::min(part.size(), kMost);
    state_->stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(part.data()));
    state_->stream.avail_in = static_cast<uInt>(bytes);
    deflate(Z_NO_FLUSH);
    part.remove_prefix(bytes);
  }
}

void GzipStream::finish() { deflate(Z_FINISH); }

/// Until zlib has taken all input, and with Z_FINISH has given all output: it then leaves some of `out` free.
void GzipStream::deflate(int flush) {
  z_stream& stream = state_->stream;
  do {
    stream.next_out = reinterpret_cast<Bytef*>(state_->out.data());
    stream.avail_out = static_cast<uInt>(state_->out.size());
    ::deflate(&stream, flush);
    if (const std::size_t bytes = state_->out.size() - stream.avail_out; bytes > 0)
      sink_(std::string_view(state_->out.data(), bytes));
  } while (stream.avail_out == 0);
}

}  // namespace gradring::train
