// SPDX-License-Identifier: Apache-2.0
#include "train/faults/do_fault.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

namespace gradring::train {

void do_fault(const PlannedFault& fault) {
  switch (fault.kind) {
    case FaultKind::kill: ::kill(::getpid(), SIGKILL); break;
    case FaultKind::stop: ::kill(::getpid(), SIGSTOP); break;
    case FaultKind::delay: std::this_thread::sleep_for(fault.delay); break;
    case FaultKind::exit: std::_Exit(fault.code);
    case FaultKind::nan: break;
  }
}

}  // namespace gradring::train
