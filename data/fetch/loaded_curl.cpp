// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "data/fetch/curl_api.h"

namespace gradring::data {

const CurlApi& curl_api() {
  // Debian's second name is the same interface over GnuTLS.
  static constexpr std::array kNames{"libcurl.so.4", "libcurl-gnutls.so.4"};
  static const CurlApi kLoaded = load_curl(kNames);
  return kLoaded;
}

}  // namespace gradring::data
