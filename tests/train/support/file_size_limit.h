// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/resource.h>

#include <stdexcept>

namespace gradring::tests {

/// A disk that is full: while this lives, no file of this process grows beyond `bytes`, and writes say so (EFBIG)
/// instead of ending the process.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    if (::getrlimit(RLIMIT_FSIZE, &before_) != 0) throw std::runtime_error("getrlimit failed");
    const rlimit small{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) throw std::runtime_error("setrlimit failed");
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  sighandler_t handler_;
  rlimit before_{};
};

}  // namespace gradring::tests
