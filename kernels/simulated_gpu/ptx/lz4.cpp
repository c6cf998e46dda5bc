// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/ptx/lz4.h"

#include <utility>

#include "kernels/simulated_gpu/ptx/error.h"

namespace gradring::ptx {
namespace {

class Lz4Block {
 public:
  Lz4Block(std::span<const std::byte> block, std::size_t bytes) : rest_(block), bytes_(bytes) {
    // A block of n bytes becomes fewer than 256 n: a damaged size must not take memory.
    check<PtxError>(bytes / 256 <= block.size(), [&] { return damage("too few bytes for their size"); });
    made_.reserve(bytes);
  }

  /// Sequences of literals and a match; the last one has literals only.
  std::string decompress() {
    while (true) {
      const unsigned token = take_byte();
      append_literals(read_length(token >> 4));
      if (rest_.empty()) break;
      const std::size_t low = take_byte();
      const std::size_t distance = low + (std::size_t{take_byte()} << 8);
      append_match(distance, 4 + read_length(token & 15));
    }
    check<PtxError>(made_.size() == bytes_, [&] { return damage("it ends after " + std::to_string(made_.size())); });
    return std::move(made_);
  }

 private:
  unsigned take_byte() {
    check<PtxError>(!rest_.empty(), [&] { return damage("it is cut short"); });
    const auto byte = std::to_integer<unsigned>(rest_.front());
    rest_ = rest_.subspan(1);
    return byte;
  }

  /// 15 goes on in the bytes that follow, until one is less than 255.
  std::size_t read_length(unsigned length) {
    if (length < 15) return length;
    std::size_t sum = length;
    unsigned byte = 255;
    while (byte == 255) sum += byte = take_byte();
    return sum;
  }

  void append_literals(std::size_t length) {
    check<PtxError>(length <= rest_.size() && length <= room(), [&] { return damage("literals past the end"); });
    made_.append(reinterpret_cast<const char*>(rest_.data()), length);
    rest_ = rest_.subspan(length);
  }

  /// The copy may read what it wrote itself.
  void append_match(std::size_t distance, std::size_t length) {
    check<PtxError>(distance > 0 && distance <= made_.size() && length <= room(),
                    [&] { return damage("a match outside of the text"); });
    for (std::size_t from = made_.size() - distance; length > 0; --length) made_.push_back(made_[from++]);
  }

  std::size_t room() const { return bytes_ - made_.size(); }

  std::string damage(const std::string& what) const {
    return "an LZ4 block of " + std::to_string(bytes_) + " bytes is damaged: " + what;
  }

  std::span<const std::byte> rest_;
  std::size_t bytes_;
  std::string made_;
};

}  // namespace

std::string decompress_lz4(std::span<const std::byte> block, std::size_t bytes) {
  return Lz4Block(block, bytes).decompress();
}

}  // namespace gradring::ptx
