// SPDX-License-Identifier: Apache-2.0
#include "train/launch/attempt.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "train/launch/signal_name.h"

namespace gradring::train {
namespace {

constexpr auto kPatienceAfterKill = std::chrono::seconds(10);
/// A worker that fails takes a moment to end, and its peers may miss it and end before it does.
constexpr auto kPatienceForCause = std::chrono::seconds(1);

double seconds(std::chrono::milliseconds duration) { return std::chrono::duration<double>(duration).count(); }

/// An interrupted worker may end as it likes, and the others may miss it. One that leaves a message of another kind
/// could not do what it was asked to: save a checkpoint, perhaps.
bool spoils_interruption(const WorkerExit& exit) { return !exit.message.empty() && !exit.blames_a_peer(); }

}  // namespace

AttemptEnd Attempt::to_the_end() {
  while (workers_.running() && !given_up_) {
    WorkerEvents events = workers_.wait(deadline_);
    for (auto& exit : events.exits) note(std::move(exit));
    if (events.regroup) regroup();
    if (events.signal != 0) handle(events.signal);
    if (deadline_ && deadline_->passed() && workers_.running()) stop_harder();
  }
  return conclude();
}

void Attempt::note(WorkerExit exit) {
  exits_.push_back(std::move(exit));
  if (!exits_.back().failed() || !undisturbed()) return;
  if (exits_.back().left_on_request()) return wait_for_the_rest();
  if (!exits_.back().blames_a_peer()) return stop(SIGTERM);
  if (phase_ == Phase::kRunning) {
    phase_ = Phase::kSuspecting;
    deadline_ = Deadline::after(kPatienceForCause);
  }
}

void Attempt::handle(int signal) {
  if (signal == SIGTSTP) return workers_.suspend();
  if (!options_.ends_run(signal)) return workers_.send(signal);
  if (interrupted_by_ == 0) {
    interrupted_by_ = signal;
    const WorkerExit* cause = root_cause(exits_);
    const bool stopping = !undisturbed() && !regroup_;  // because of a failure
    failed_before_ = stopping && cause != nullptr && !cause->blames_a_peer();
    if (stopping) return say_(signal_name(signal) + ": not starting again");
    say_(fmt::format("{}: waiting up to {} s for the workers to end{}", signal_name(signal),
                     seconds(options_.kill_grace), signal == SIGINT ? "; once more kills them" : ""));
    stop(signal);
  } else if (signal == SIGINT || signal == SIGQUIT) {
    if (phase_ == Phase::kStopping) kill("killing the workers");
  }  // the others are often sent twice, by people and by schedulers: they do not cut a last checkpoint short
}

/// Whoever can saves on SIGTERM, as when a run is preempted. What has ended well is not begun again in another world.
void Attempt::regroup() {
  const bool finished = !workers_.running() && root_cause(exits_) == nullptr;
  if (!undisturbed() || finished) return;
  regroup_ = true;
  stop(SIGTERM);
}

void Attempt::stop(int signal) {
  phase_ = Phase::kStopping;
  deadline_ = Deadline::after(options_.kill_grace);
  workers_.send(signal);
  workers_.send(SIGCONT);  // a stopped process would not see it
}

void Attempt::wait_for_the_rest() {
  interrupted_by_ = SIGTERM;
  phase_ = Phase::kStopping;
  deadline_ = Deadline::after(options_.kill_grace);
}

void Attempt::stop_harder() {
  if (phase_ == Phase::kSuspecting) return stop(SIGTERM);
  const std::string names = workers_.running_names();
  if (phase_ == Phase::kStopping)
    return kill(fmt::format("{} did not end within {} s: killing", names, seconds(options_.kill_grace)));
  say_(fmt::format("{} cannot be killed, the kernel holds on to it: leaving it", names));
  given_up_ = true;
}

void Attempt::kill(const std::string& why) {
  phase_ = Phase::kKilled;
  deadline_ = Deadline::after(kPatienceAfterKill);
  say_(why);
  workers_.send(SIGKILL);
}

AttemptEnd Attempt::conclude() {
  if (regroup_ && interrupted_by_ == 0 && !given_up_) return {.regroup = true};
  const WorkerExit* cause = root_cause(exits_);
  AttemptEnd end;
  if (interrupted_by_ != 0 && !failed_before_ && (cause == nullptr || !spoils_interruption(*cause)))
    return {.code = exit_code_after(interrupted_by_)};
  if (given_up_ && cause == nullptr) return {.code = 128 + SIGKILL};
  if (cause == nullptr) {
    const auto failed = std::ranges::find_if(exits_, &WorkerExit::failed);
    return {.code = failed == exits_.end() ? 0 : failed->exit_code()};
  }
  end.code = cause->exit_code();
  end.may_repeat = interrupted_by_ == 0 && !given_up_ && cause->exec_error == 0;
  end.exits = std::move(exits_);
  return end;
}

}  // namespace gradring::train
