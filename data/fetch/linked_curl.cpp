// SPDX-License-Identifier: Apache-2.0
#include "data/fetch/curl_api.h"

namespace gradring::data {

const CurlApi& curl_api() {
  static constexpr CurlApi kLinked{.easy_init = &::curl_easy_init,
                                   .easy_setopt = &::curl_easy_setopt,
                                   .easy_perform = &::curl_easy_perform,
                                   .easy_getinfo = &::curl_easy_getinfo,
                                   .easy_strerror = &::curl_easy_strerror,
                                   .easy_cleanup = &::curl_easy_cleanup,
                                   .strnequal = &::curl_strnequal,
                                   .version = &::curl_version,
                                   .version_info = &::curl_version_info};
  return kLinked;
}

}  // namespace gradring::data
