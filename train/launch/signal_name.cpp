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
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
    if (name == signal_name(number)) return number;
  return 0;
}

int exit_code_after(int signal) { return 128 + (signal == SIGINT || signal == SIGQUIT ? signal : SIGTERM); }

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace gradring::train
