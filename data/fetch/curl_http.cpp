// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>

#include "data/fetch/curl_api.h"
#include "data/fetch/error.h"
#include "data/fetch/http.h"
#include "kernels/runtime/error.h"

namespace gradring::data {
namespace {

constexpr long kWholeContent = 200;
constexpr long kPartialContent = 206;
constexpr long kFewestBytesASecond = 1024;
constexpr long kMostRedirections = 5;

struct CurlCleanup {
  void operator()(CURL* curl) const { curl_api().easy_cleanup(curl); }
};

/// One request. libcurl is C: no exception may pass through it, so they are kept and thrown again behind it.
class Transfer {
 public:
  Transfer(const HttpRequest& request, HttpBody& body) : body_(body), api_(curl_api()), curl_(api_.easy_init()) {
    check<FetchError>(curl_ != nullptr, "libcurl does not start");
    const bool secure = request.url.starts_with("https:");
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, kMostRedirections);
    set(CURLOPT_FAILONERROR, 1L);  // no body from an answer of 400 and above
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_USERAGENT, "gradring");
    set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(request.timeouts.connect.count()));
    set(CURLOPT_LOW_SPEED_LIMIT, kFewestBytesASecond);
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.timeouts.stall.count()));
    set(CURLOPT_ERRORBUFFER, reason_.data());
    set(CURLOPT_WRITEFUNCTION, &Transfer::take_body);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_HEADERFUNCTION, &Transfer::take_header);
    set(CURLOPT_HEADERDATA, this);
    // Not CURLOPT_RESUME_FROM, with which libcurl itself refuses servers that know no ranges.
    if (request.begin > 0) set(CURLOPT_RANGE, (std::to_string(request.begin) + "-").c_str());
  }

  void run() {
    const CURLcode result = api_.easy_perform(curl_.get());
    if (thrown_) std::rethrow_exception(thrown_);
    if (result == CURLE_HTTP_RETURNED_ERROR) throw HttpStatusError(status());
    if (result != CURLE_OK) throw FetchError(reason_[0] ? reason_.data() : api_.easy_strerror(result));
    if (!begun_) begin();  // a file without bytes
  }

 private:
  template <class Value>
  void set(CURLoption option, Value value) {
    check<FetchError>(api_.easy_setopt(curl_.get(), option, value) == CURLE_OK, "libcurl knows too little");
  }

  long status() const {
    long code = 0;
    api_.easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &code);
    return code;
  }

  /// Each answer on the way, redirections too, begins with a status line.
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
    if (status() == kWholeContent) return body_.begin(0);
    if (status() != kPartialContent) throw HttpStatusError(status());  // what comes with it is not the file
    check_range();
    body_.begin(*range_begin_);
  }

  void check_range() const {
    if (!range_begin_) throw FetchError("the server sends a part and does not say which (206 without Content-Range)");
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

void http_get(const HttpRequest& request, HttpBody& body) {
  if (!request.url.starts_with("http://") && !request.url.starts_with("https://"))
    throw InvalidArgument("'" + request.url + "' is no address to fetch from: it must begin with https:// or http://");
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
