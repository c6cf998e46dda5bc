// SPDX-License-Identifier: Apache-2.0
#include "train/cli/standard_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <system_error>
#include <typeinfo>

#include "kernels/runtime/error.h"
#include "kernels/runtime/file.h"

namespace gradring::train {

void reserve_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) == -1)
      ::open("/dev/null", O_RDONLY);  // takes the lowest free number; writes fail with EBADF
}

/// fmt throws std::system_error itself; a class that is derived from it comes from elsewhere.
bool is_output_failure(const std::exception& error) {
  return std::ferror(stdout) != 0 && typeid(error) == typeid(std::system_error);
}

void flush_standard_output() {
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category(), "cannot write standard output");
}

int finish_standard_output(int code, const std::exception* failure) {
  const auto* reported = dynamic_cast<const std::system_error*>(failure);
  int error = reported != nullptr ? reported->code().value() : 0;
  const bool lost_before = std::ferror(stdout) != 0;
  if (std::fflush(stdout) != 0 && error == 0) error = errno;
  if (error == 0 && !lost_before) return code;
  if (error != EPIPE)
    print_to_stderr(
        fmt::format("gradring: cannot write standard output{}{}; the result is incomplete: free some space "
                    "or choose another file\n",
                    error != 0 ? ": " : "", error != 0 ? std::generic_category().message(error) : ""));
  std::clearerr(stdout);  // reported above
  if (code != kOk) return code;
  return error == EPIPE ? kBrokenPipe : kEnvironment;
}

void print_json(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace gradring::train
