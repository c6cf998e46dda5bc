// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "kernels/runtime/error.h"
#include "train/launch/options/option.h"
#include "train/launch/options/value.h"
#include "train/launch/signal_name.h"

namespace gradring::train {
namespace {

constexpr int kMost = 1'000'000'000;

void read_max_restarts(LaunchDraft& draft, const std::string& value) {
  draft.options.restarts.most = whole_number(value, 0, kMost);
}

void read_backoff(LaunchDraft& draft, const std::string& value) {
  const auto dots = value.find("..");
  RestartOptions& restarts = draft.options.restarts;
  restarts.first_backoff = duration(value.substr(0, dots));
  restarts.longest_backoff = dots == std::string::npos ? restarts.first_backoff : duration(value.substr(dots + 2));
  if (restarts.first_backoff > restarts.longest_backoff)
    throw InvalidArgument("is FIRST..LONGEST with FIRST the longer");
}

void read_min_progress(LaunchDraft& draft, const std::string& value) {
  draft.options.restarts.min_progress_steps = whole_number(value, 0, kMost);
}

void read_kill_grace(LaunchDraft& draft, const std::string& value) { draft.options.kill_grace = duration(value); }

void read_monitor_interval(LaunchDraft&, const std::string& value) { duration(value); }

void read_signals(LaunchDraft& draft, const std::string& value) {
  draft.options.handled_signals.clear();
  for (std::string name : comma_separated(value)) {
    std::erase(name, ' ');  // as torchrun does
    const int number = stopping_signal(name);
    if (number == 0)
      throw InvalidArgument(
          fmt::format("'{}' is not one of SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2", name));
    draft.options.handled_signals.push_back(number);
  }
}

void read_event_log_handler(LaunchDraft&, const std::string& value) {
  if (value != "null") throw InvalidArgument("there are no handlers of events here: say null");
}

constexpr Option kOptions[] = {
    {"max-restarts", 0, "N", "how often to start all workers again after a failure (default 0)", read_max_restarts},
    {"backoff", 0, "FIRST..LONGEST",
     "the wait before a restart, doubled from one without progress to the next; the "
     "first one waits for nothing (default 1s..30s)",
     read_backoff},
    {"min-progress-steps", 0, "N",
     "give up after 3 attempts in a row that came less than N steps further; 0: never "
     "(default 1, for workers that report their steps)",
     read_min_progress},
    {"kill-grace", 0, "TIME", "from asking workers to end to killing them: 30, 30s, 500ms, 2m (default 30s)",
     read_kill_grace},
    {"shutdown-timeout", 0, "SECONDS", "the same, as torchrun calls it", read_kill_grace,
     "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"},
    {"signals-to-handle", 0, "LIST",
     "signals that end the run; SIGUSR1 and SIGUSR2 are allowed (default SIGTERM,SIGINT,SIGHUP,SIGQUIT)", read_signals},
    {"monitor-interval", 0, "SECONDS", "without effect: the end of a worker is noticed at once (default 0.1)",
     read_monitor_interval},
    {"event-log-handler", 0, "NAME", "null (default null)", read_event_log_handler},
};

}  // namespace

std::span<const Option> watch_options() { return kOptions; }

}  // namespace gradring::train
