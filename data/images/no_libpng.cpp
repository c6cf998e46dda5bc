// SPDX-License-Identifier: Apache-2.0
#include "data/images/decoders.h"
#include "data/images/image.h"

namespace gradring::data {

Image decode_png(const std::filesystem::path&, std::string_view, Alpha) {
  throw NoPngError("cannot read PNGs: this gradring was built without libpng; install libpng-dev and build it again");
}

std::string png_library() { return {}; }

}  // namespace gradring::data
