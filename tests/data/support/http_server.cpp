// SPDX-License-Identifier: Apache-2.0
#include "tests/data/support/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <utility>

namespace gradring::tests {
namespace {

constexpr int kPatienceMilliseconds = 60'000;

void check(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

/// Whether `fd` became readable, or its peer went; false if `wake` ended the wait first.
bool wait_for(int fd, int wake) {
  std::array<pollfd, 2> polled = {pollfd{.fd = fd, .events = POLLIN, .revents = 0},
                                  pollfd{.fd = wake, .events = POLLIN, .revents = 0}};
  if (::poll(polled.data(), polled.size(), kPatienceMilliseconds) <= 0) return false;
  return polled[1].revents == 0;
}

/// "GET /path HTTP/1.1" and "Range: bytes=500-".
HttpRequestSeen parse(const std::string& head) {
  const std::size_t path = head.find('/') + 1;
  HttpRequestSeen request{.path = head.substr(path, head.find(' ', path) - path)};
  const std::string range = "Range: bytes=";
  if (const std::size_t at = head.find(range); at != std::string::npos)
    request.begin = std::strtoull(head.c_str() + at + range.size(), nullptr, 10);
  return request;
}

std::string head_of(int status, std::size_t bytes, const std::string& more = {}) {
  return "HTTP/1.1 " + std::to_string(status) + " -\r\nConnection: close\r\nContent-Length: " + std::to_string(bytes) +
         "\r\n" + more + "\r\n";
}

}  // namespace

HttpServer::HttpServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  std::array<int, 2> ends{};
  check(::pipe2(ends.data(), O_CLOEXEC) == 0, "pipe2");
  wake_read_ = UniqueFd(ends[0]);
  wake_write_ = UniqueFd(ends[1]);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  check(listener_ && ::bind(listener_.get(), generic, size) == 0 && ::listen(listener_.get(), 16) == 0, "listen");
  check(::getsockname(listener_.get(), generic, &size) == 0, "getsockname");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

HttpServer::~HttpServer() {
  wake_write_.reset();
  thread_.join();
}

std::string HttpServer::url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/"; }

void HttpServer::serve(const std::string& path, ServedFile file) {
  std::lock_guard lock(mutex_);
  files_[path] = std::move(file);
}

std::vector<HttpRequestSeen> HttpServer::requests() const {
  std::lock_guard lock(mutex_);
  return requests_;
}

void HttpServer::run() {
  while (wait_for(listener_.get(), wake_read_.get())) {
    const UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (client) answer(client.get());
  }
}

void HttpServer::answer(int client) {
  const std::string head = read_head(client);
  if (head.empty()) return;
  const HttpRequestSeen request = parse(head);
  std::optional<ServedFile> file;
  {
    std::lock_guard lock(mutex_);
    requests_.push_back(request);
    if (const auto found = files_.find(request.path); found != files_.end()) {
      file = found->second;
      auto& faults = found->second.faults;
      if (!faults.empty()) faults.erase(faults.begin());
    }
  }
  if (file) return answer_file(client, request, *file);
  const std::string none = head_of(404, 0);
  send(client, none.data(), none.size());
}

void HttpServer::answer_file(int client, const HttpRequestSeen& request, ServedFile& file) {
  const std::size_t size = file.content.size();
  const bool part = file.knows_ranges && request.begin > 0;
  std::size_t begin = part ? request.begin : 0;
  std::string head;
  if (!file.redirect.empty()) {
    head = head_of(301, 0, "Location: " + file.redirect + "\r\n");
    begin = size;
  } else if (file.status != 200 || begin > size) {
    head = head_of(file.status != 200 ? file.status : 416, 0);
    begin = size;
  } else if (part) {
    head = head_of(206, size - begin,
                   "Content-Range: bytes " + std::to_string(begin) + "-" + std::to_string(size - 1) + "/" +
                       std::to_string(size) + "\r\n");
  } else {
    head = head_of(200, size);
  }
  send(client, head.data(), head.size());
  const std::size_t left = size - begin;
  const std::size_t sent = file.faults.empty() ? left : std::min(left, file.faults.front().after_bytes);
  send(client, file.content.data() + begin, sent);
  if (!file.faults.empty() && file.faults.front().stalls) wait_for_end(client);
}

void HttpServer::send(int client, const void* data, std::size_t bytes) const {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(client, at, bytes, MSG_NOSIGNAL);
    if (sent <= 0) return;  // the client has gone, as it may
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
}

std::string HttpServer::read_head(int client) const {
  std::string head;
  std::array<char, 4096> piece{};
  while (head.find("\r\n\r\n") == std::string::npos) {
    if (!wait_for(client, wake_read_.get())) return {};
    const ssize_t count = ::recv(client, piece.data(), piece.size(), 0);
    if (count <= 0) return {};
    head.append(piece.data(), static_cast<std::size_t>(count));
  }
  return head;
}

void HttpServer::wait_for_end(int client) const { wait_for(client, wake_read_.get()); }

}  // namespace gradring::tests
