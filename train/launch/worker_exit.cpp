// SPDX-License-Identifier: Apache-2.0
#include "train/launch/worker_exit.h"

#include <fmt/format.h>

#include <algorithm>

#include "train/launch/exit_code.h"
#include "train/launch/host_name.h"
#include "train/launch/signal_name.h"

namespace gradring::train {
namespace {

/// By these the launcher ends workers. It forwards SIGUSR1 and SIGUSR2 without that intention: a worker that dies of them has
/// failed.
constexpr int kStoppingSignals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGKILL};

}  // namespace

bool WorkerExit::was_asked_to_end() const {
  return std::ranges::any_of(kStoppingSignals, [this](int number) { return sent[static_cast<std::size_t>(number)]; });
}

bool WorkerExit::stopped_by_launcher() const {
  const int number = signal != 0 ? signal : code - 128;
  return std::ranges::count(kStoppingSignals, number) > 0 && sent[static_cast<std::size_t>(number)];
}

bool WorkerExit::left_on_request() const {
  return code == kPreempted && (sent[SIGHUP] || sent[SIGUSR1] || sent[SIGUSR2]);
}

bool WorkerExit::blames_a_peer() const { return code == kPeerLost || code == kTimeout; }

const WorkerExit* root_cause(std::span<const WorkerExit> exits) {
  const auto to_blame = [](const WorkerExit& exit) {
    return exit.failed() && !exit.stopped_by_launcher() && !exit.left_on_request();
  };
  const auto has_own_cause = [&](const WorkerExit& exit) { return to_blame(exit) && !exit.blames_a_peer(); };
  auto it = std::ranges::find_if(exits, has_own_cause);
  if (it == exits.end()) it = std::ranges::find_if(exits, to_blame);
  return it == exits.end() ? nullptr : &*it;
}

std::string describe(const WorkerExit& exit, int world_size) {
  const std::string end = exit.signal != 0
                              ? fmt::format("was killed by signal {} ({})", exit.signal, signal_name(exit.signal))
                              : fmt::format("exited with code {}", exit.code);
  return fmt::format("rank {} of {} (pid {} on {}) {}", exit.rank, world_size, exit.pid,
                     exit.host.empty() ? host_name() : exit.host, end);
}

}  // namespace gradring::train
