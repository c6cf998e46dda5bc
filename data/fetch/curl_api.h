// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <curl/curl.h>

#include <span>

namespace gradring::data {

/// The functions of libcurl that http_get calls. They may come from a library that is linked or from one that is loaded at
/// run time, so every call goes through here.
struct CurlApi {
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_setopt) easy_setopt = nullptr;
  decltype(&::curl_easy_perform) easy_perform = nullptr;
  decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_strnequal) strnequal = nullptr;
  decltype(&::curl_version) version = nullptr;
  decltype(&::curl_version_info) version_info = nullptr;
};

/// This build's libcurl: linked (linked_curl.cpp), or the machine's, loaded at the first call (loaded_curl.cpp).
///
/// Errors    as load_curl where it is loaded; a later call tries again.
/// Threads   safe from any thread.
const CurlApi& curl_api();

/// Loads the first of the given libraries that is there: names such as "libcurl.so.4".
///
/// Errors    FetchError that says what to install if none loads, or if the one that does is older than 7.85.
CurlApi load_curl(std::span<const char* const> names);

}  // namespace gradring::data
