// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace gradring::train {

/// Sends a signal to every process of a group. kill() itself would take group 1 for "every process there is", and group
/// 0 for the caller's own: here those are refused.
///
/// Returns   whether there is such a group.
/// Errors    none: it may be called between fork and exec, and in destructors.
bool signal_group(pid_t group, int number) noexcept;

}  // namespace gradring::train
