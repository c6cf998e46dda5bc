// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernels/base/file.h"
#include "tests/support/temp_folder.h"

namespace gradring::tests {

/// What goes wrong with one answer: after so many bytes of the body the server closes the connection, or falls silent.
struct HttpFault {
  std::size_t after_bytes = 0;
  bool stalls = false;
};

/// A file as the server gives it.
struct ServedFile {
  Bytes content;
  bool knows_ranges = true;
  std::vector<HttpFault> faults = {};  ///< of the first answers, one each; the others are whole
  int status = 200;
  std::string redirect = {};  ///< where 301 sends the client; nothing: no redirection
};

/// A request as it came.
struct HttpRequestSeen {
  std::string path;
  std::uint64_t begin = 0;  ///< of its range; 0 where it has none

  bool operator==(const HttpRequestSeen&) const = default;
};

/// A server on 127.0.0.1 that knows GET, ranges to the end, and the faults that downloads must survive. It serves one
/// connection at a time, on a thread of its own.
class HttpServer {
 public:
  HttpServer();
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// "http://127.0.0.1:41234/".
  std::string url() const;
  /// Serves `file` at `path` ("set/images.gz") from now on.
  void serve(const std::string& path, ServedFile file);
  /// All requests so far, in order.
  std::vector<HttpRequestSeen> requests() const;

 private:
  void run();
  void answer(int client);
  void answer_file(int client, const HttpRequestSeen& request, ServedFile& file);
  void send(int client, const void* data, std::size_t bytes) const;
  std::string read_head(int client) const;
  /// Until the client goes or the server ends.
  void wait_for_end(int client) const;

  UniqueFd listener_;
  UniqueFd wake_read_, wake_write_;  // a pipe; closing its end ends every wait
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::map<std::string, ServedFile> files_;
  std::vector<HttpRequestSeen> requests_;
  std::thread thread_;
};

}  // namespace gradring::tests
