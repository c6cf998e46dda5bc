// SPDX-License-Identifier: Apache-2.0
// A PNG with and without its transparency, as it is; and, since a fuzzer does not guess checksums, with those of its
// chunks set right.
#include <zlib.h>

#include <cstdlib>
#include <vector>

#include "data/files/byte_source.h"
#include "data/images/image.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_path.h"

using namespace gradring::data;

namespace {

void read(const std::uint8_t* data, std::size_t size, Alpha alpha) {
  const gradring::tests::MemoryPath file(data, size);
  try {
    const Image image = read_image(file.path(), alpha);
    if (image.channels != 3 && (image.channels != 4 || alpha == Alpha::drop)) std::abort();
    if (static_cast<std::int64_t>(image.pixels.size()) != image.height * image.width * image.channels) std::abort();
    if (image.pixels.size() < 10'000) to_sample(image, {28, 28, image.channels == 4 ? 4 : 1}, false);
  } catch (const DataError&) {
  } catch (const NoPngError&) {
  } catch (const NoJpegError&) {
  }
}

/// Each chunk is a length, a type, data, and the CRC-32 of type and data; numbers are big-endian.
void repair_checksums(std::vector<std::uint8_t>& png) {
  constexpr std::size_t kSignature = 8, kBesideData = 12;
  const auto number_at = [&](std::size_t at) {
    std::size_t number = 0;
    for (std::size_t i = 0; i < 4; ++i) number = number << 8 | png[at + i];
    return number;
  };
  for (std::size_t at = kSignature; at + kBesideData <= png.size();) {
    const std::size_t length = number_at(at), end = at + kBesideData + length;
    if (end > png.size()) return;
    const auto sum = crc32(0, png.data() + at + 4, static_cast<uInt>(length + 4));
    for (std::size_t i = 0; i < 4; ++i) png[end - 1 - i] = static_cast<std::uint8_t>(sum >> 8 * i);
    at = end;
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint8_t> repaired(data, data + size);
  repair_checksums(repaired);
  for (const Alpha alpha : {Alpha::drop, Alpha::keep}) {
    read(data, size, alpha);
    read(repaired.data(), repaired.size(), alpha);
  }
  return 0;
}
