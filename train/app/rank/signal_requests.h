// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <csignal>
#include <mutex>
#include <string>
#include <thread>

#include "train/core/trainer/trainer_world.h"

namespace gradring::train {

/// Requests by signals, as launchers, Slurm and Kubernetes send them:
///
///   SIGTERM, SIGUSR1, SIGINT    save a checkpoint and exit
///   SIGHUP                      as SIGTERM; stays ignored if it was ignored before (nohup)
///   SIGUSR2                     save a checkpoint and continue
///   SIGQUIT                     print this rank's position to stderr
///
/// Before the training has begun there is nothing to save: SIGTERM, SIGUSR1, SIGINT and SIGHUP end the process at once,
/// as does a second SIGINT. After it has ended, SIGUSR1 and SIGUSR2 do nothing.
///
/// Threads   construct it before the process has other threads: they inherit its signal mask. One object at a time.
class SignalRequests final : public RunRequests {
 public:
  /// `name`: prefix of the lines on stderr, "rank 1 of 2".
  explicit SignalRequests(std::string name);
  ~SignalRequests() override;
  SignalRequests(const SignalRequests&) = delete;
  SignalRequests& operator=(const SignalRequests&) = delete;

  RunRequest take() override { return request_.exchange(RunRequest::none); }
  void at(const RunPosition& position) override;
  /// 128 + the signal that requested the stop; 128 + SIGTERM if another rank received it.
  int exit_code() const { return 128 + stopped_by_.load(); }

 private:
  void wait_for_signals();
  void handle(int signal);
  void ask(RunRequest request);
  void print_position();

  std::string name_;
  std::atomic<RunRequest> request_{RunRequest::none};
  std::atomic<int> stopped_by_{SIGTERM};
  std::atomic<bool> begun_{false};
  std::atomic<bool> ended_{false};
  bool interrupted_ = false;  // used by the waiting thread only
  std::mutex mutex_;          // guards the next one
  RunPosition position_;
  sigset_t taken_{}, before_{};
  std::thread thread_;
};

}  // namespace gradring::train
