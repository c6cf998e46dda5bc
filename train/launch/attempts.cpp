// SPDX-License-Identifier: Apache-2.0
#include "train/launch/attempts.h"

#include <fmt/format.h>

#include "train/launch/failure_report.h"
#include "train/launch/signal_name.h"

namespace gradring::train {
namespace {

double seconds(std::chrono::milliseconds duration) { return std::chrono::duration<double>(duration).count(); }

/// Sleeps until the next attempt. Returns the signal that ends the run meanwhile, 0 if none does.
int wait_for_restart(Workers& workers, std::chrono::milliseconds wait) {
  const auto deadline = Deadline::after(wait);
  while (!deadline.passed()) {
    const int signal = workers.wait(deadline).signal;
    if (signal == SIGTSTP) workers.suspend();
    if (stops_a_run(signal)) return signal;
  }
  return 0;
}

}  // namespace

int run_attempts(const LaunchOptions& options, Workers& workers, const Say& say) try {
  RestartPolicy restarts(options.restarts);
  for (;;) {
    workers.start(restarts.restarts());
    const AttemptEnd end = Attempt(workers, options.kill_grace, say).to_the_end();
    RestartDecision next;
    if (end.may_repeat) next = restarts.after_failure(end.code, workers.furthest_step());
    if (!next.reason.empty()) say("not starting again: " + next.reason);
    for (const std::string& line : failure_lines(end.exits, options.program, workers.world_size())) say(line);
    if (!next.again) return end.code;

    say(fmt::format("starting all workers again{}: restart {} of {}",
                    next.wait.count() > 0 ? fmt::format(" in {} s", seconds(next.wait)) : "", restarts.restarts(),
                    options.restarts.most));
    if (const int signal = wait_for_restart(workers, next.wait); signal != 0) {
      say(signal_name(signal) + ": not starting again");
      return 128 + signal;
    }
  }
} catch (const StartInterrupted& interrupted) {
  say(signal_name(interrupted.signal) + " while waiting for the other nodes");
  return 128 + interrupted.signal;
}

}  // namespace gradring::train
