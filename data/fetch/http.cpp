// SPDX-License-Identifier: Apache-2.0
#include "data/fetch/http.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/child_process.h"
#include "kernels/base/deadline.h"

namespace gradring::data {
namespace {

constexpr long kStatusOk = 200;
constexpr long kStatusPartialContent = 206;
/// For what curl's own timeouts do not cover.
constexpr std::chrono::seconds kMargin{30};

/// What an answer says before its body.
struct AnswerHead {
  long status = 0;
  bool is_redirection = false;  ///< to an address that curl follows
  std::optional<std::uint64_t> range_begin{};
};

/// The number behind `before` in a line; nothing if it is missing.
std::optional<std::uint64_t> number_behind(std::string_view line, std::string_view before) {
  const std::size_t at = line.find(before);
  if (at == line.npos) return std::nullopt;
  std::uint64_t number = 0;
  const char* const digits = line.data() + at + before.size();
  const bool is_number = std::from_chars(digits, line.data() + line.size(), number).ec == std::errc();
  return is_number ? std::optional(number) : std::nullopt;
}

/// "HTTP/1.1 206 Partial Content", header lines such as "Content-Range: bytes 500-999/1000", and an empty line.
AnswerHead read_head(ChildProcess& curl, Deadline deadline) {
  AnswerHead head;
  for (;;) {
    std::string line = curl.read_line(deadline);
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) return head;
    if (line.starts_with("HTTP/")) head = {.status = static_cast<long>(number_behind(line, " ").value_or(0))};
    std::ranges::transform(line, line.begin(), [](unsigned char c) { return std::tolower(c); });
    if (line.starts_with("location:")) head.is_redirection = head.status / 100 == 3;
    if (line.starts_with("content-range:")) head.range_begin = number_behind(line, "bytes ");
  }
}

/// One run of the program curl, whose stdout is the heads of all answers and the body of the last one.
class Transfer {
 public:
  explicit Transfer(const HttpRequest& request)
      : patience_(request.timeouts.connect + request.timeouts.stall + kMargin),
        errors_(::memfd_create("curl", MFD_CLOEXEC)),
        curl_({.words = words_for(request), .error_fd = errors_.get()}) {}

  void run(HttpBody& body) {
    AnswerHead head;
    try {
      do head = read_head(curl_, Deadline::after(patience_));
      while (head.is_redirection || head.status / 100 == 1);
    } catch (const DeviceError& error) {
      throw FetchError(reason().value_or(error.what()));
    }
    if (head.status != kStatusOk && head.status != kStatusPartialContent) throw HttpStatusError(head.status);
    const bool is_part = head.status == kStatusPartialContent;
    if (is_part && !head.range_begin) throw FetchError("the server sent status 206 without Content-Range");
    body.begin(is_part ? *head.range_begin : 0);
    std::array<char, 1 << 16> buffer;
    while (const std::size_t count = curl_.read(buffer, Deadline::after(patience_)))
      body.write(std::as_bytes(std::span(buffer).first(count)));
    if (!curl_.wait()) throw FetchError(reason().value_or("curl was killed"));
  }

 private:
  static std::vector<std::string> words_for(const HttpRequest& request) {
    std::istringstream fixed(
        "curl --disable --silent --show-error --include --suppress-connect-headers --no-buffer --globoff --location "
        "--max-redirs 5 --user-agent gradring --proto =http,https --speed-limit 1024");  // --disable: no .curlrc
    std::vector<std::string> words(std::istream_iterator<std::string>(fixed), {});
    const auto add = [&words](const char* option, std::string value) {
      words.insert(words.end(), {option, std::move(value)});
    };
    add("--proto-redir", request.url.starts_with("https:") ? "=https" : "=http,https");
    add("--connect-timeout", std::to_string(request.timeouts.connect.count()));
    add("--speed-time", std::to_string(request.timeouts.stall.count()));
    add("--url", request.url);
    // Not --continue-at: with it curl rejects servers that do not support ranges.
    if (request.begin > 0) add("--range", std::to_string(request.begin) + "-");
    return words;
  }

  /// Why curl ended: the first line of its stderr, without "curl: (28) ".
  std::optional<std::string> reason() {
    std::array<char, 512> buffer;
    const ssize_t count = ::pread(errors_.get(), buffer.data(), buffer.size(), 0);
    std::string_view text(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    text = text.substr(0, text.find('\n'));
    if (text.starts_with("curl: (")) text.remove_prefix(std::min(text.find(") "), text.size() - 2) + 2);
    return text.empty() ? std::nullopt : std::optional<std::string>(text);
  }

  std::chrono::seconds patience_;
  UniqueFd errors_;
  ChildProcess curl_;
};

}  // namespace

void http_get(const HttpRequest& request, HttpBody& body) {
  if (!request.url.starts_with("http://") && !request.url.starts_with("https://"))
    throw InvalidArgument("'" + request.url + "' is not a download address: expected https:// or http://");
  Transfer(request).run(body);
}

void require_http() {
  if (curl_version().empty())
    throw FetchError(
        "the program curl was not found: install it (Debian: curl, ca-certificates), or download the files by other "
        "means and check them with gradring data verify");
}

std::string curl_version() try {
  ChildProcess curl({.words = {"curl", "--disable", "--version"}});
  const std::string line = curl.read_line(Deadline::after(kMargin));  // "curl 7.88.1 (x86_64-pc-linux-gnu) ..."
  constexpr std::string_view kName = "curl ";
  return line.starts_with(kName) ? line.substr(kName.size(), line.find(' ', kName.size()) - kName.size()) : "";
} catch (const DeviceError&) {
  return {};
}

}  // namespace gradring::data
