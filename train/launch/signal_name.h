// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gradring::train {

/// "SIGTERM"; "signal 63" for one without a name.
std::string signal_name(int number);

/// The number of a signal that can be chosen to end a run, by its name: SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 or
/// SIGUSR2. 0 for any other.
int stopping_signal(const std::string& name);

/// The exit code of a run that a signal has ended: 130 for SIGINT, 131 for SIGQUIT, and 143 for every other, which is
/// treated as SIGTERM.
int exit_code_after(int signal);

/// Whether this process ignores a signal, as it ignores SIGHUP under nohup.
bool is_ignored(int signal);

}  // namespace gradring::train
