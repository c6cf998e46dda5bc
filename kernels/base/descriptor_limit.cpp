// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/descriptor_limit.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <system_error>

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
  if (error) return 0;  // not even one
  const auto used = static_cast<std::size_t>(std::distance(begin(open), end(open)));
  return limit.rlim_cur - std::min<std::size_t>(used, limit.rlim_cur);
}

}  // namespace gradring
