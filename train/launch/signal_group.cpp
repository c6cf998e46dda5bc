// SPDX-License-Identifier: Apache-2.0
#include "train/launch/signal_group.h"

#include <signal.h>

namespace gradring::train {

bool signal_group(pid_t group, int number) noexcept { return group > 1 && ::kill(-group, number) == 0; }

}  // namespace gradring::train
