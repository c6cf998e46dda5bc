// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gradring {

/// What may be too low if a process or a thread cannot be started, for messages: "ulimit -u is 512, ulimit -v is
/// unlimited, pids.max is 100". pids.max, the least of its control groups, is left out where it has no limit.
std::string process_limits();

/// Why a process could not be started, by errno after pipe(), fork() or posix_spawn(), and what to do.
std::string reason_of_failed_fork(int error);

}  // namespace gradring
