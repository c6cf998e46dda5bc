// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace gradring {

/// Raises the soft limit of this process's open files (ulimit -n) to the hard one, as NCCL does: many shells and
/// services set 1024, which a large run exceeds. If that is refused, the limit stays as it is.
class DescriptorLimit {
 public:
  DescriptorLimit() noexcept;

  /// In a child, between fork and exec: sets the limit found. Programs that use select(), or that close every descriptor
  /// up to the limit, expect it.
  void restore_in_child() const noexcept;

 private:
  rlimit before_{};
};

/// How many more files this process may open.
std::size_t free_descriptors();

}  // namespace gradring
