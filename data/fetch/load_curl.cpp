// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>

#include "data/fetch/curl_api.h"
#include "data/fetch/error.h"
#include "kernels/runtime/shared_library.h"

namespace gradring::data {
namespace {

constexpr unsigned kOldestVersion = 0x075500;  // 7.85.0, the first with CURLOPT_PROTOCOLS_STR
constexpr const char* kAdvice =
    ": install libcurl 7.85 or later (Debian: libcurl4), or download the files by other means and check them with "
    "gradring "
    "data verify";

/// Errors    FetchError with what the loader says of the first name.
SharedLibrary open_first(std::span<const char* const> names) {
  std::optional<std::string> reason;
  for (const char* name : names) {
    try {
      return SharedLibrary(name, {});
    } catch (const DeviceError& error) {
      if (!reason) reason = error.what();
    }
  }
  throw FetchError("libcurl does not load: " + reason.value_or("no library was named") + kAdvice);
}

}  // namespace

CurlApi load_curl(std::span<const char* const> names) {
  const SharedLibrary library = open_first(names);
  CurlApi api;
  try {
    library.find("curl_easy_init", api.easy_init);
    library.find("curl_easy_setopt", api.easy_setopt);
    library.find("curl_easy_perform", api.easy_perform);
    library.find("curl_easy_getinfo", api.easy_getinfo);
    library.find("curl_easy_strerror", api.easy_strerror);
    library.find("curl_easy_cleanup", api.easy_cleanup);
    library.find("curl_strnequal", api.strnequal);
    library.find("curl_version", api.version);
    library.find("curl_version_info", api.version_info);
  } catch (const DeviceError& error) {
    throw FetchError(error.what() + std::string(kAdvice));
  }
  const curl_version_info_data& found = *api.version_info(CURLVERSION_NOW);
  if (found.version_num < kOldestVersion)
    throw FetchError(library.path() + " is libcurl " + found.version + ", which is too old" + kAdvice);
  return api;
}

}  // namespace gradring::data
