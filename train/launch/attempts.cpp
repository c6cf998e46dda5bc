// SPDX-License-Identifier: Apache-2.0
#include "train/launch/attempts.h"

#include <fmt/format.h>

#include "train/launch/failure_report.h"
#include "train/launch/signal_name.h"

namespace gradring::train {
namespace {

double seconds(std::chrono::milliseconds duration) { return std::chrono::duration<double>(duration).count(); }

/// Sleeps until the next attempt. Returns the signal that ends the run meanwhile, 0 if none does.
int wait_for_restart(const LaunchOptions& options, Workers& workers, std::chrono::milliseconds wait) {
  const auto deadline = Deadline::after(wait);
  while (!deadline.passed()) {
    const int signal = workers.wait(deadline).signal;
    if (signal == SIGTSTP) workers.suspend();
    if (options.ends_run(signal)) return signal;
  }
  return 0;
}

/// Whether workers failed only because a node has gone that the rest can do without.
bool lost_a_node(const AttemptEnd& end, Workers& workers) {
  const WorkerExit* cause = root_cause(end.exits);
  return end.may_repeat && cause != nullptr && cause->blames_a_peer() && workers.can_go_on_without_a_node();
}

}  // namespace

int run_attempts(const LaunchOptions& options, Workers& workers, const Say& say) try {
  RestartPolicy restarts(options.restarts);
  for (int attempt = 0;; ++attempt) {
    workers.start(attempt);
    const AttemptEnd end = Attempt(options, workers, say).to_the_end();
    if (end.regroup || lost_a_node(end, workers)) {
      say("a node has come or gone: starting all workers again, which costs no restart");
      continue;
    }
    RestartDecision next;
    if (end.may_repeat) next = restarts.after_failure(end.code, workers.furthest_step());
    if (!next.reason.empty()) say("not starting again: " + next.reason);
    for (const std::string& line : failure_lines(end.exits, options.program, workers.world_size())) say(line);
    if (!next.again) return end.code;

    say(fmt::format("starting all workers again{}: restart {} of {}",
                    next.wait.count() > 0 ? fmt::format(" in {} s", seconds(next.wait)) : "", restarts.restarts(),
                    options.restarts.most));
    if (const int signal = wait_for_restart(options, workers, next.wait); signal != 0) {
      say(signal_name(signal) + ": not starting again");
      return exit_code_after(signal);
    }
  }
} catch (const StartInterrupted& interrupted) {
  say(signal_name(interrupted.signal) + " while waiting for the other nodes");
  return exit_code_after(interrupted.signal);
}

}  // namespace gradring::train
