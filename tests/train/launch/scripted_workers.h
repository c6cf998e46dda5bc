// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "train/launch/workers/workers.h"

namespace gradring::train {

/// Workers without processes: each wait() returns the next event of a script, one script per attempt.
class ScriptedWorkers final : public Workers {
 public:
  using Script = std::deque<WorkerEvents>;

  explicit ScriptedWorkers(std::vector<Script> attempts) : attempts_(attempts.begin(), attempts.end()) {}

  /// Returned during the wait between two attempts.
  std::deque<int> signals_between{};
  std::optional<std::int64_t> step{};
  /// "start 0", "send 15", "suspend", in the order of the calls.
  std::vector<std::string> calls{};

  void start(int attempt) override {
    calls.push_back("start " + std::to_string(attempt));
    current_ = std::move(attempts_.front());
    attempts_.pop_front();
  }
  int world_size() const override { return 2; }
  bool running() const override { return !current_.empty(); }
  std::string running_names() const override { return "rank 0"; }
  WorkerEvents wait(std::optional<Deadline>) override {
    if (current_.empty()) return {.signal = take(signals_between)};
    return take(current_);
  }
  void send(int number) noexcept override {
    if (number != SIGCONT) calls.push_back("send " + std::to_string(number));
  }
  void suspend() override { calls.push_back("suspend"); }
  std::optional<std::int64_t> furthest_step() const override { return step; }

 private:
  template <class T>
  static T take(std::deque<T>& from) {
    if (from.empty()) return {};
    T first = std::move(from.front());
    from.pop_front();
    return first;
  }

  std::deque<Script> attempts_;
  Script current_;
};

}  // namespace gradring::train
