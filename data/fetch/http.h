// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "kernels/base/error.h"

namespace gradring::data {

/// A download failed because of the network, a server or the disk.
class FetchError : public Error, public ExitsWith<kEnvironment> {
 public:
  using Error::Error;
};

/// A server answered with an error status.
class HttpStatusError final : public FetchError {
 public:
  explicit HttpStatusError(long status)
      : FetchError("the server answered " + std::to_string(status)), status_(status) {}

  long status() const { return status_; }

 private:
  long status_;
};

/// A local failure that no other server can help with: a full disk, a folder without write permission.
class DiskError final : public FetchError {
 public:
  DiskError(const std::filesystem::path& path, const std::string& what)
      : FetchError(path.string() + ": " + what + "; free some space or choose another --data-dir") {}
};

struct HttpTimeouts {
  std::chrono::seconds connect{15};
  std::chrono::seconds stall{30};  ///< time below one kilobyte per second
};

struct HttpRequest {
  std::string url;          ///< http:// or https://
  std::uint64_t begin = 0;  ///< first byte to request
  HttpTimeouts timeouts = {};
};

/// Receives the body of an answer. An exception ends the request and is thrown by http_get.
class HttpBody {
 public:
  virtual ~HttpBody() = default;
  /// Called once, before the first byte, with that byte's position in the file: 0 if the server does not support
  /// ranges.
  virtual void begin(std::uint64_t offset) = 0;
  virtual void write(std::span<const std::byte> bytes) = 0;
};

/// HTTP GET by the program curl. Follows redirects (from https to https only).
///
/// Errors    InvalidArgument for a scheme other than http and https. FetchError if the server is not found, does not
///           answer, stalls or disconnects, and as require_http; HttpStatusError for any status but 200 and 206. `body`
///           has received what arrived before.
/// Threads   safe from any thread.
/// Source    RFC 9110 (HTTP, ranges).
void http_get(const HttpRequest& request, HttpBody& body);

/// Errors    FetchError if there is no program curl on PATH; says what to install.
void require_http();

/// "7.88.1", empty if require_http would throw.
std::string curl_version();

}  // namespace gradring::data
