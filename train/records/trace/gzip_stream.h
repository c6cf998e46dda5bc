// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string_view>

namespace gradring::train {

/// Compresses a text that comes in parts of any size, and passes the compressed bytes on in parts.
///
/// Errors    std::bad_alloc; what `sink` throws.
/// Cost      memory for 64 KiB, and what zlib needs, about 256 KiB.
/// Source    RFC 1952 (gzip), by zlib.
class GzipStream {
 public:
  using Sink = std::function<void(std::string_view bytes)>;

  explicit GzipStream(Sink sink);
  ~GzipStream();
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  void write(std::string_view part);
  /// Passes on the rest.
  void finish();

 private:
  struct State;

  void deflate(int flush);

  Sink sink_;
  std::unique_ptr<State> state_;
};

}  // namespace gradring::train
