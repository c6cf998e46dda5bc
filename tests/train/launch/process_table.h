// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace gradring::train {

/// What /proc says of processes, for tests that ask who is left.

/// "R", "S", "T" (stopped), "Z" (zombie), ...; empty if there is no such process.
std::string process_state(pid_t pid);
std::string process_name(pid_t pid);
std::vector<pid_t> children_of(pid_t parent);

/// The processes, zombies excepted, that have `entry` ("NAME=value") in their environment.
std::vector<pid_t> processes_with(const std::string& entry);

/// kill(), for one process that is known: kill(-1) would end everything on the machine.
///
/// Errors    std::invalid_argument if pid is not a process's number.
void signal_process(pid_t pid, int number);

/// How many TCP sockets, of any kind, the process has open.
int tcp_sockets_of(pid_t pid);

/// Looks every few milliseconds until `condition` holds; false if it does not within half a minute.
bool eventually(const std::function<bool()>& condition);

}  // namespace gradring::train
