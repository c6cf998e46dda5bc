// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "data/fetch/curl_api.h"
#include "data/fetch/http.h"
#include "kernels/base/error.h"
#include "kernels/base/shared_library.h"

namespace gradring::data {
namespace {

constexpr unsigned kOldestVersion = 0x075500;  // 7.85.0, the first with CURLOPT_PROTOCOLS_STR
constexpr const char* kAdvice =
    ": install libcurl 7.85 or later (Debian: libcurl4), or download the files by other means and check them with "
    "gradring data verify";

/// Errors    FetchError with the dynamic loader's message for the first name.
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

constexpr long kStatusOk = 200;
constexpr long kStatusPartialContent = 206;
constexpr long kMinBytesPerSecond = 1024;
constexpr long kMaxRedirects = 5;

struct CurlCleanup {
  void operator()(CURL* curl) const { curl_api().easy_cleanup(curl); }
};

/// One request. No exception may pass through libcurl, which is C: callbacks store it and run() rethrows it.
class Transfer {
 public:
  Transfer(const HttpRequest& request, HttpBody& body) : body_(body), api_(curl_api()), curl_(api_.easy_init()) {
    check<FetchError>(curl_ != nullptr, "libcurl failed to initialise");
    const bool secure = request.url.starts_with("https:");
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, kMaxRedirects);
    set(CURLOPT_FAILONERROR, 1L);  // no body for status 400 and above
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_USERAGENT, "gradring");
    set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(request.timeouts.connect.count()));
    set(CURLOPT_LOW_SPEED_LIMIT, kMinBytesPerSecond);
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.timeouts.stall.count()));
    set(CURLOPT_ERRORBUFFER, reason_.data());
    set(CURLOPT_WRITEFUNCTION, &Transfer::take_body);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_HEADERFUNCTION, &Transfer::take_header);
    set(CURLOPT_HEADERDATA, this);
    // Not CURLOPT_RESUME_FROM: with it libcurl rejects servers that do not support ranges.
    if (request.begin > 0) set(CURLOPT_RANGE, (std::to_string(request.begin) + "-").c_str());
  }

  void run() {
    const CURLcode result = api_.easy_perform(curl_.get());
    if (thrown_) std::rethrow_exception(thrown_);
    if (result == CURLE_HTTP_RETURNED_ERROR) throw HttpStatusError(status());
    if (result != CURLE_OK) throw FetchError(reason_[0] ? reason_.data() : api_.easy_strerror(result));
    if (!begun_) begin();  // an empty file
  }

 private:
  template <class Value>
  void set(CURLoption option, Value value) {
    check<FetchError>(api_.easy_setopt(curl_.get(), option, value) == CURLE_OK, "libcurl rejects an option");
  }

  long status() const {
    long code = 0;
    api_.easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &code);
    return code;
  }

  /// Every answer, also a redirect, begins with a status line.
  static std::size_t take_header(char* data, std::size_t, std::size_t size, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    const std::string_view line(data, size);
    if (line.starts_with("HTTP/")) transfer.range_begin_.reset();
    constexpr std::string_view kName = "content-range:";
    if (size > kName.size() && transfer.api_.strnequal(data, kName.data(), kName.size()))
      transfer.read_range(line.substr(kName.size()));
    return size;
  }

  /// " bytes 500-999/1000".
  void read_range(std::string_view text) {
    constexpr std::string_view kUnit = "bytes ";
    const std::size_t at = text.find(kUnit);
    if (at == std::string_view::npos) return;
    std::uint64_t first = 0;
    const char* const digits = text.data() + at + kUnit.size();
    if (std::from_chars(digits, text.data() + text.size(), first).ec == std::errc()) range_begin_ = first;
  }

  static std::size_t take_body(const char* data, std::size_t, std::size_t size, void* self) noexcept {
    auto& transfer = *static_cast<Transfer*>(self);
    try {
      if (!transfer.begun_) transfer.begin();
      transfer.body_.write(std::as_bytes(std::span(data, size)));
      return size;
    } catch (...) {
      transfer.thrown_ = std::current_exception();
      return CURL_WRITEFUNC_ERROR;
    }
  }

  void begin() {
    begun_ = true;
    if (status() == kStatusOk) return body_.begin(0);
    if (status() != kStatusPartialContent) throw HttpStatusError(status());  // its body is not the file
    if (!range_begin_) throw FetchError("the server sent status 206 without Content-Range");
    body_.begin(*range_begin_);
  }

  HttpBody& body_;
  const CurlApi& api_;
  std::unique_ptr<CURL, CurlCleanup> curl_;
  std::array<char, CURL_ERROR_SIZE> reason_{};
  std::optional<std::uint64_t> range_begin_;
  std::exception_ptr thrown_;
  bool begun_ = false;
};

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
    throw FetchError(library.path() + " is libcurl " + found.version + ", expected 7.85 or later" + kAdvice);
  return api;
}

const CurlApi& curl_api() {
  // Debian's second name is the GnuTLS build of the same interface.
  static constexpr std::array kNames{"libcurl.so.4", "libcurl-gnutls.so.4"};
  static const CurlApi kLoaded = load_curl(kNames);
  return kLoaded;
}

void http_get(const HttpRequest& request, HttpBody& body) {
  if (!request.url.starts_with("http://") && !request.url.starts_with("https://"))
    throw InvalidArgument("'" + request.url + "' is not a download address: expected https:// or http://");
  Transfer(request, body).run();
}

void require_http() { curl_api(); }

std::string http_library() {
  try {
    return curl_api().version();
  } catch (const FetchError&) {
    return {};
  }
}

}  // namespace gradring::data
