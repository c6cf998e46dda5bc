// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gradring::train {

/// "SIGTERM"; "signal 63" for one without a name.
std::string signal_name(int number);

/// The number of a signal that asks a run to end, by its name: SIGTERM, SIGINT, SIGHUP or SIGQUIT. 0 for any other.
int stopping_signal(const std::string& name);

/// Whether a signal, of those that a launcher takes, asks a run to end.
bool stops_a_run(int number);

}  // namespace gradring::train
