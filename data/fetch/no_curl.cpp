// SPDX-License-Identifier: Apache-2.0
#include "data/fetch/http.h"

namespace gradring::data {

void require_http() {
  throw FetchError(
      "this gradring was built without libcurl: install libcurl4-openssl-dev and build it again, or download the files "
      "by other means and check them with gradring data verify");
}

void http_get(const HttpRequest&, HttpBody&) { require_http(); }

std::string http_library() { return {}; }

}  // namespace gradring::data
