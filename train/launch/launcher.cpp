// SPDX-License-Identifier: Apache-2.0
#include "train/launch/launcher.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <optional>

#include "kernels/runtime/error.h"
#include "train/launch/worker_group.h"

namespace gradring::train {
namespace {

constexpr auto kPatienceAfterKill = std::chrono::seconds(10);
/// A worker that fails takes a moment to end, and its peers may miss it and end before it does.
constexpr auto kPatienceForCause = std::chrono::seconds(1);

/// The policy of one run: what follows from each event, until all workers have ended.
class Run {
 public:
  explicit Run(const LaunchOptions& options) : options_(options), workers_(options) {}

  int to_the_end() {
    while (workers_.running() && !given_up_) {
      WorkerEvents events = workers_.wait(deadline_);
      for (auto& exit : events.exits) note(std::move(exit));
      if (events.signal != 0) handle(events.signal);
      if (deadline_ && deadline_->passed() && workers_.running()) stop_harder();
    }
    return conclude();
  }

 private:
  /// In kSuspecting a worker has failed that blames a peer: the peer is given time to end by itself, and to say why.
  enum class Phase { kRunning, kSuspecting, kStopping, kKilled };

  void note(WorkerExit exit) {
    exits_.push_back(std::move(exit));
    if (!exits_.back().failed() || !undisturbed()) return;
    if (!exits_.back().blames_a_peer()) return stop(SIGTERM);
    if (phase_ == Phase::kRunning) {
      phase_ = Phase::kSuspecting;
      deadline_ = Deadline::after(kPatienceForCause);
    }
  }

  /// Nobody has been told to stop yet.
  bool undisturbed() const { return phase_ == Phase::kRunning || phase_ == Phase::kSuspecting; }

  void handle(int number) {
    switch (number) {
      case SIGUSR1:
      case SIGUSR2: return workers_.send(number);
      case SIGTSTP: return workers_.suspend();
      default: break;
    }
    if (undisturbed()) {
      interrupted_by_ = number;
      say("{}: waiting up to {} s for the workers to end{}", signal_name(number), seconds(options_.kill_grace),
          number == SIGINT ? "; once more kills them" : "");
      stop(number);
    } else if (number == SIGINT || number == SIGQUIT) {
      if (phase_ == Phase::kStopping) kill("killing the workers");
    }  // SIGTERM is often sent twice, by people and by schedulers: it does not cut a last checkpoint short
  }

  void stop(int number) {
    phase_ = Phase::kStopping;
    deadline_ = Deadline::after(options_.kill_grace);
    workers_.send(number);
    workers_.send(SIGCONT);  // a stopped process would not see it
  }

  void stop_harder() {
    if (phase_ == Phase::kSuspecting) return stop(SIGTERM);
    const std::string names = workers_.running_names();
    if (phase_ == Phase::kStopping)
      return kill(fmt::format("{} did not end within {} s: killing", names, seconds(options_.kill_grace)));
    say("{} cannot be killed, the kernel holds on to it: leaving it", names);
    given_up_ = true;
  }

  void kill(const std::string& why) {
    phase_ = Phase::kKilled;
    deadline_ = Deadline::after(kPatienceAfterKill);
    say("{}", why);
    workers_.send(SIGKILL);
  }

  /// Says what went wrong and returns the exit code.
  int conclude() const {
    const WorkerExit* cause = root_cause(exits_);
    if (interrupted_by_ != 0 && (cause == nullptr || !spoils_interruption(*cause))) return 128 + interrupted_by_;
    if (cause == nullptr) return given_up_ ? 128 + SIGKILL : 0;
    report(*cause);
    return cause->exit_code();
  }

  /// An interrupted worker may end as it likes, and the others may miss it. One that leaves a message of another kind
  /// could not do what it was asked to: save a checkpoint, perhaps.
  static bool spoils_interruption(const WorkerExit& exit) { return !exit.message.empty() && !exit.blames_a_peer(); }

  void report(const WorkerExit& cause) const {
    if (cause.exec_error != 0) return say("cannot run '{}': {}", options_.program, std::strerror(cause.exec_error));
    say("{}{}{}{}", describe(cause, options_.nproc_per_node), options_.nproc_per_node > 1 ? ", the first to fail" : "",
        cause.message.empty() ? "" : ": ", cause.message);
  }

  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) const {
    fmt::print(stderr, "{}: {}\n", options_.title, fmt::format(format, std::forward<Args>(args)...));
  }

  static double seconds(std::chrono::milliseconds duration) { return std::chrono::duration<double>(duration).count(); }

  const LaunchOptions& options_;
  WorkerGroup workers_;
  std::vector<WorkerExit> exits_;  ///< in the order in which they were seen
  Phase phase_ = Phase::kRunning;
  int interrupted_by_ = 0;
  bool given_up_ = false;
  std::optional<Deadline> deadline_;  ///< of the current phase; running has none
};

}  // namespace

int launch(const LaunchOptions& options) {
  check(!options.program.empty(), "launch needs a program to run");
  check(options.nproc_per_node > 0, "launch needs at least one worker");
  return Run(options).to_the_end();
}

int spawn_ranks(int nprocs, const std::vector<std::string>& arguments, const std::string& program) {
  return launch({.program = program.empty() ? own_program() : program,
                 .arguments = arguments,
                 .nproc_per_node = nprocs,
                 .title = "gradring"});
}

std::string own_program() {
  constexpr const char* kSelf = "/proc/self/exe";
  char path[PATH_MAX];
  const ssize_t length = ::readlink(kSelf, path, sizeof(path));
  const std::string program(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  // Deleted or replaced since: the link still leads to the program, its text does not.
  return ::access(program.c_str(), X_OK) == 0 ? program : kSelf;
}

}  // namespace gradring::train
