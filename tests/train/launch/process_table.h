// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace gradring::train {

/// Processes as listed in /proc.

/// "R", "S", "T" (stopped), "Z" (zombie), ...; empty if there is no such process.
std::string process_state(pid_t pid);
std::string process_name(pid_t pid);
std::vector<pid_t> children_of(pid_t parent);

/// The processes except zombies that have `entry` ("NAME=value") in their environment.
std::vector<pid_t> processes_with(const std::string& entry);

/// kill() for a single process; refuses pids such as -1, which means all processes.
///
/// Errors    std::invalid_argument if pid is not greater than 1.
void signal_process(pid_t pid, int number);

/// The number of open TCP sockets of a process.
int tcp_sockets_of(pid_t pid);

/// Polls until `condition` holds; false after 30 s.
bool eventually(const std::function<bool()>& condition);

}  // namespace gradring::train
