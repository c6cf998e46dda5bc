// SPDX-License-Identifier: Apache-2.0
#include "data/images/decoders.h"
#include "data/images/image.h"

namespace gradring::data {

void require_png() {
  throw NoPngError("cannot read images: this gradring was built without libpng; install libpng-dev and build it again");
}

Image read_png(const std::filesystem::path&) {
  require_png();
  return {};
}

DecodedImage decode_png(const std::filesystem::path&, std::string_view) {
  require_png();
  return {};
}

std::string png_library() { return {}; }

}  // namespace gradring::data
