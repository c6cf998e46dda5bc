// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <curl/curl.h>

#include <span>

namespace gradring::data {

/// The functions of libcurl that http_get calls, loaded at run time: a program runs without libcurl until it downloads.
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

/// The machine's libcurl, loaded at the first call.
///
/// Errors    as load_curl; a later call tries again.
/// Threads   safe from any thread.
const CurlApi& curl_api();

/// Loads the first of the libraries `names` ("libcurl.so.4") that exists.
///
/// Errors    FetchError if none loads or it is older than 7.85; says what to install.
CurlApi load_curl(std::span<const char* const> names);

}  // namespace gradring::data
