// SPDX-License-Identifier: Apache-2.0
#include "train/launch/workers/attempt.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "train/launch/workers/signals.h"

namespace gradring::train {
namespace {

constexpr auto kTimeoutAfterKill = std::chrono::seconds(10);
/// A failing worker takes a moment to end; its peers may notice and end first.
constexpr auto kTimeoutForCause = std::chrono::seconds(1);
constexpr int kMaxAttemptsWithoutProgress = 3;

double seconds(std::chrono::milliseconds duration) { return std::chrono::duration<double>(duration).count(); }

/// Interrupted workers may exit with any code and blame their peers. Any other error message means that the worker
/// could not do its last work, such as saving a checkpoint.
bool overrides_interruption(const WorkerExit& exit) { return !exit.message.empty() && !exit.blames_peer(); }

/// Waits for the next attempt. Returns the signal that ended the run meanwhile, else 0.
int wait_for_restart(const LaunchOptions& options, Workers& workers, std::chrono::milliseconds wait) {
  const auto deadline = Deadline::after(wait);
  while (!deadline.passed()) {
    const int signal = workers.wait(deadline).signal;
    if (signal == SIGTSTP) workers.suspend();
    if (options.ends_run(signal)) return signal;
  }
  return 0;
}

/// Whether workers failed only because of a lost node that the run can continue without.
bool lost_dispensable_node(const AttemptResult& result, Workers& workers) {
  const WorkerExit* cause = root_cause(result.exits);
  return result.retryable && cause != nullptr && cause->blames_peer() && workers.can_continue_without_node();
}

}  // namespace

int run_attempts(const LaunchOptions& options, Workers& workers, const Logger& log) try {
  RestartPolicy restarts(options.restarts);
  for (int attempt = 0;; ++attempt) {
    workers.start(attempt);
    const AttemptResult result = Attempt(options, workers, log).run();
    if (result.regroup || lost_dispensable_node(result, workers)) {
      log("the number of nodes changed: restarting all workers, which does not count as a restart");
      continue;
    }
    RestartDecision next;
    if (result.retryable) next = restarts.after_failure(result.code, workers.furthest_step());
    if (!next.reason.empty()) log("not restarting: " + next.reason);
    for (const std::string& line : failure_lines(result.exits, options.program, workers.world_size())) log(line);
    if (!next.again) return result.code;

    log(fmt::format("restarting all workers{}: restart {} of {}",
                    next.wait.count() > 0 ? fmt::format(" in {} s", seconds(next.wait)) : "", restarts.restarts(),
                    options.restarts.most));
    if (const int signal = wait_for_restart(options, workers, next.wait); signal != 0) {
      log(signal_name(signal) + ": not restarting");
      return exit_code_after(signal);
    }
  }
} catch (const StartInterrupted& interrupted) {
  log(signal_name(interrupted.signal) + " while waiting for other nodes");
  return exit_code_after(interrupted.signal);
}

RestartDecision RestartPolicy::after_failure(int code, std::optional<std::int64_t> step) {
  without_progress_ = made_progress(step) ? 0 : without_progress_ + 1;
  if (options_.most == 0) return {};
  if (std::ranges::find(options_.final_codes, code) != options_.final_codes.end())
    return {.reason = fmt::format("exit code {} would recur", code)};
  if (restarts_ == options_.most) return {.reason = fmt::format("all {} restarts are used up", options_.most)};

  const bool progress_counts = options_.min_progress_steps ? *options_.min_progress_steps > 0 : step.has_value();
  if (progress_counts && without_progress_ >= kMaxAttemptsWithoutProgress)
    return {.reason = fmt::format("{} consecutive attempts advanced by fewer than {} steps (--min-progress-steps)",
                                  without_progress_, options_.min_progress_steps.value_or(1))};
  ++restarts_;
  return {.again = true, .wait = backoff()};
}

bool RestartPolicy::made_progress(std::optional<std::int64_t> step) {
  if (!step) return false;
  const std::int64_t least = std::max<std::int64_t>(1, options_.min_progress_steps.value_or(1));
  if (*step - furthest_.value_or(0) < least) return false;
  furthest_ = step;
  return true;
}

std::chrono::milliseconds RestartPolicy::backoff() const {
  if (without_progress_ <= 1) return {};
  auto wait = options_.first_backoff;
  for (int i = 2; i < without_progress_ && wait < options_.longest_backoff; ++i) wait *= 2;
  return std::min(wait, options_.longest_backoff);
}

AttemptResult Attempt::run() {
  while (workers_.running() && !given_up_) {
    WorkerEvents events = workers_.wait(deadline_);
    for (auto& exit : events.exits) record(std::move(exit));
    if (events.regroup) regroup();
    if (events.signal != 0) handle(events.signal);
    if (deadline_ && deadline_->passed() && workers_.running()) escalate();
  }
  return conclude();
}

void Attempt::record(WorkerExit exit) {
  exits_.push_back(std::move(exit));
  if (!exits_.back().failed() || !undisturbed()) return;
  const WorkerExit& last = exits_.back();
  if (last.left_on_request()) return await_requested_exits();
  // An agent asks its workers to end if it has lost the leader, which then hears of the lost node, too.
  const bool may_follow_peer = last.blames_peer() || last.followed_preemption() || last.was_asked_to_end();
  if (!may_follow_peer) return stop(SIGTERM);
  if (phase_ == Phase::kRunning) {
    phase_ = Phase::kAwaitingCause;
    deadline_ = Deadline::after(kTimeoutForCause);
  }
}

void Attempt::handle(int signal) {
  if (signal == SIGTSTP) return workers_.suspend();
  if (!options_.ends_run(signal)) return workers_.send(signal);
  if (signal == SIGINT) ++interrupts_;
  if (interrupted_by_ == 0) {
    interrupted_by_ = signal;
    const WorkerExit* cause = root_cause(exits_);
    const bool stopping = !undisturbed() && !regroup_;  // because of a failure
    failed_before_signal_ = stopping && cause != nullptr && !cause->blames_peer();
    if (stopping) return log_(signal_name(signal) + ": not restarting");
    log_(fmt::format("{}: waiting up to {} s for the workers to end{}", signal_name(signal),
                     seconds(options_.kill_grace), signal == SIGINT ? "; a second one kills them" : ""));
    stop(signal == SIGQUIT ? SIGTERM : signal);  // gradring's ranks take SIGQUIT as a request for their status
  } else if (signal == SIGINT && phase_ == Phase::kStopping) {
    if (interrupts_ > 1) return kill("killing the workers");
    log_("SIGINT: still waiting for the workers to end; a second one kills them");
  }  // users and schedulers often repeat the others: they must not cut a last checkpoint short
}

/// SIGTERM lets workers save, as on preemption. Workers that all succeeded do not restart.
void Attempt::regroup() {
  const bool succeeded = !workers_.running() && root_cause(exits_) == nullptr;
  if (!undisturbed() || succeeded) return;
  regroup_ = true;
  stop(SIGTERM);
}

void Attempt::stop(int signal) {
  phase_ = Phase::kStopping;
  deadline_ = Deadline::after(options_.kill_grace);
  workers_.send(signal);
  workers_.send(SIGCONT);  // a stopped process would not see the signal
}

/// All workers received SIGUSR1 and one has left: the run ends as after SIGTERM.
void Attempt::await_requested_exits() {
  interrupted_by_ = SIGTERM;
  phase_ = Phase::kStopping;
  deadline_ = Deadline::after(options_.kill_grace);
}

void Attempt::escalate() {
  if (phase_ == Phase::kAwaitingCause) return stop(SIGTERM);
  const std::string names = workers_.running_names();
  if (phase_ == Phase::kStopping)
    return kill(fmt::format("{} did not end within {} s: killing", names, seconds(options_.kill_grace)));
  log_(fmt::format("{} did not end after SIGKILL (blocked in the kernel): the launcher exits without it", names));
  given_up_ = true;
}

void Attempt::kill(const std::string& why) {
  phase_ = Phase::kKilled;
  deadline_ = Deadline::after(kTimeoutAfterKill);
  log_(why);
  workers_.send(SIGKILL);
}

AttemptResult Attempt::conclude() {
  if (regroup_ && interrupted_by_ == 0 && !given_up_) return {.regroup = true};
  const WorkerExit* cause = root_cause(exits_);
  AttemptResult result;
  if (interrupted_by_ != 0 && !failed_before_signal_ && (cause == nullptr || !overrides_interruption(*cause)))
    return {.code = exit_code_after(interrupted_by_)};
  if (given_up_ && cause == nullptr) return {.code = 128 + SIGKILL};
  if (cause == nullptr) {
    const auto failed = std::ranges::find_if(exits_, &WorkerExit::failed);
    return {.code = failed == exits_.end() ? 0 : failed->exit_code()};
  }
  result.code = cause->exit_code();
  result.retryable = interrupted_by_ == 0 && !given_up_ && cause->exec_error == 0;
  result.exits = std::move(exits_);
  return result;
}

}  // namespace gradring::train
