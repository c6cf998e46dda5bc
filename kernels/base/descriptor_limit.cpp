// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/descriptor_limit.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <string>
#include <system_error>

#include "kernels/base/error.h"

namespace gradring {

DescriptorLimit::DescriptorLimit() noexcept {
  if (::getrlimit(RLIMIT_NOFILE, &before_) != 0) return;
  rlimit raised = before_;
  raised.rlim_cur = raised.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &raised);
}

void DescriptorLimit::restore_in_child() const noexcept {
  if (before_.rlim_max > 0) ::setrlimit(RLIMIT_NOFILE, &before_);
}

std::size_t free_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::numeric_limits<std::size_t>::max();
  std::error_code error;
  const std::filesystem::directory_iterator open("/proc/self/fd", error);
  if (error == std::errc::too_many_files_open || error == std::errc::too_many_files_open_in_system) return 0;
  if (error) return limit.rlim_cur;  // no /proc here
  const auto used = static_cast<std::size_t>(std::distance(begin(open), end(open)));
  return limit.rlim_cur - std::min<std::size_t>(used, limit.rlim_cur);
}

void require_descriptors(std::size_t count, std::string_view user) {
  const DescriptorLimit raised;
  const std::size_t available = free_descriptors();
  if (available >= count) return;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const std::string needed = std::to_string(limit.rlim_cur + count - available);
  throw DeviceError(std::string(user) + " needs " + std::to_string(count) +
                    " more open files, but the hard limit of this process is " + std::to_string(limit.rlim_cur) +
                    ", which leaves " + std::to_string(available) + ": raise it to " + needed +
                    " or more where the job is started (ulimit -Hn; LimitNOFILE= of a systemd service, such as slurmd "
                    "with srun --propagate=NONE; docker --ulimit nofile=" +
                    needed + ")");
}

}  // namespace gradring
