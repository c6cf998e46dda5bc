// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <cstddef>
#include <string_view>

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

/// Raises the limit as DescriptorLimit does, and checks that this process may open `count` more files. `user` is what
/// needs them: "a rank of a world of 300".
///
/// Errors    DeviceError that says how to raise the limit.
void require_descriptors(std::size_t count, std::string_view user);

}  // namespace gradring
