// SPDX-License-Identifier: Apache-2.0
#include "train/launch/signal_name.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstring>

namespace gradring::train {

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

int stopping_signal(const std::string& name) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT})
    if (name == signal_name(number)) return number;
  return 0;
}

bool stops_a_run(int number) { return number != 0 && stopping_signal(signal_name(number)) == number; }

}  // namespace gradring::train
