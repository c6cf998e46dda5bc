// SPDX-License-Identifier: Apache-2.0
#include "data/images/decoders.h"
#include "data/images/image.h"

namespace gradring::data {

Image decode_jpeg(const std::filesystem::path&, std::string_view) {
  throw NoJpegError(
      "cannot read JPEGs: this gradring was built without libjpeg-turbo; install libjpeg-dev and build it again");
}

std::string jpeg_library() { return {}; }

}  // namespace gradring::data
