// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <stdexcept>

namespace gradring::tests {

/// While this lives, the process can open no further file, socket or process handle (EMFILE); what is open stays open.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    if (::getrlimit(RLIMIT_NOFILE, &before_) != 0) throw std::runtime_error("getrlimit failed");
    const int next = ::dup(STDIN_FILENO);  // the lowest number that is free
    if (next < 0) throw std::runtime_error("dup failed");
    ::close(next);
    const rlimit none{.rlim_cur = static_cast<rlim_t>(next), .rlim_max = before_.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &none) != 0) throw std::runtime_error("setrlimit failed");
  }
  ~NoMoreFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;

 private:
  rlimit before_{};
};

}  // namespace gradring::tests
