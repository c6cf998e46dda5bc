// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace gradring::data {

struct HttpTimeouts {
  std::chrono::seconds connect{15};
  std::chrono::seconds stall{30};  ///< less than a kilobyte a second for so long
};

struct HttpRequest {
  std::string url;          ///< http:// or https://
  std::uint64_t begin = 0;  ///< the first byte that is wanted
  HttpTimeouts timeouts = {};
};

/// Takes the body of an answer. What it throws ends the request and comes out of http_get.
class HttpBody {
 public:
  virtual ~HttpBody() = default;
  /// Once, before the first byte: which byte of the file that is. Not what was asked for where a server knows no ranges.
  virtual void begin(std::uint64_t offset) = 0;
  virtual void write(std::span<const std::byte> bytes) = 0;
};

/// GET, with redirections followed (from https to https only).
///
/// Errors    InvalidArgument for another scheme than http and https. FetchError with the reason if the server is not found,
///           does not answer, stalls or breaks off, and as require_http; HttpStatusError for any status but 200 and
///           206. What has come by then was given to `body`.
/// Threads   safe from any thread.
/// Source    RFC 9110 (HTTP, ranges), by libcurl.
void http_get(const HttpRequest& request, HttpBody& body);

/// Errors    FetchError that says what to install, if this build has no HTTP or its libcurl does not load.
void require_http();

/// "libcurl/7.88.1 OpenSSL/3.0.19 ...", or nothing where require_http would throw.
std::string http_library();

}  // namespace gradring::data
