// SPDX-License-Identifier: Apache-2.0
// Image files, of which the corpus holds JPEGs.
#include <cstdlib>

#include "data/files/byte_source.h"
#include "data/images/image.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_path.h"

using namespace gradring::data;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const gradring::tests::MemoryPath file(data, size);
  try {
    const Image image = read_image(file.path());
    if (static_cast<std::int64_t>(image.pixels.size()) != image.height * image.width * 3) std::abort();
  } catch (const DataError&) {
  } catch (const NoPngError&) {
  } catch (const NoJpegError&) {
  }
  return 0;
}
