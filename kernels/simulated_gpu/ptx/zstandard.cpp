// SPDX-License-Identifier: Apache-2.0
#include <zstd.h>

#include <memory>

#include "kernels/simulated_gpu/ptx/error.h"
#include "kernels/simulated_gpu/ptx/fat_binary.h"

namespace gradring::ptx {
namespace {

constexpr std::size_t kPieceBytes = 64 * 1024;

[[noreturn]] void throw_damaged(std::size_t bytes, const std::string& what) {
  throw PtxError(joined("a Zstandard frame of ", bytes, " bytes is damaged: ", what));
}

}  // namespace

/// Piece by piece: a damaged size must not take memory.
std::string decompress_zstandard(std::span<const std::byte> frame, std::size_t bytes) {
  const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(), ZSTD_freeDStream);
  check<PtxError>(stream != nullptr, "there is no memory to decompress PTX");
  std::string made;
  ZSTD_inBuffer input{.src = frame.data(), .size = frame.size(), .pos = 0};
  for (std::size_t expected = 1; expected != 0;) {
    const std::size_t before = made.size();
    made.resize(before + kPieceBytes);
    ZSTD_outBuffer output{.dst = made.data() + before, .size = kPieceBytes, .pos = 0};
    expected = ZSTD_decompressStream(stream.get(), &output, &input);
    made.resize(before + output.pos);
    if (ZSTD_isError(expected) != 0) throw_damaged(bytes, ZSTD_getErrorName(expected));
    if (made.size() > bytes) throw_damaged(bytes, "it is longer");
    if (expected != 0 && output.pos == 0 && input.pos == input.size) throw_damaged(bytes, "it is cut short");
  }
  if (made.size() != bytes) throw_damaged(bytes, joined("it ends after ", made.size()));
  return made;
}

bool has_zstandard() { return true; }

}  // namespace gradring::ptx
