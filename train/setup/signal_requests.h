// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <csignal>
#include <mutex>
#include <string>
#include <thread>

#include "train/trainer/trainer_world.h"

namespace gradring::train {

/// Requests by signals, as launchers, Slurm and Kubernetes send them:
///
///   SIGTERM, SIGUSR1, SIGINT    save a checkpoint and leave
///   SIGHUP                      the same as SIGTERM, unless it is ignored when this is made (nohup): then it stays ignored
///   SIGUSR2                     save a checkpoint and go on
///   SIGQUIT                     say on stderr where this rank is
///
/// Until the training has begun there is nothing to save: those of the first two lines end the process at once, as does
/// a second SIGINT. Once it has ended, SIGUSR1 and SIGUSR2 do nothing.
///
/// Threads   make it before the process has other threads: they inherit that these signals are not theirs. One at a
///           time.
class SignalRequests final : public RunRequests {
 public:
  /// `name` begins the lines on stderr: "rank 1 of 2".
  explicit SignalRequests(std::string name);
  ~SignalRequests() override;
  SignalRequests(const SignalRequests&) = delete;
  SignalRequests& operator=(const SignalRequests&) = delete;

  RunRequest take() override { return request_.exchange(RunRequest::none); }
  void at(const RunPlace& place) override;
  /// 128 + the signal by which the training was asked to leave; 128 + SIGTERM if this rank was asked by others.
  int exit_code() const { return 128 + stopped_by_.load(); }

 private:
  void wait_for_signals();
  void handle(int signal);
  void ask(RunRequest request);
  void print_place();

  std::string name_;
  std::atomic<RunRequest> request_{RunRequest::none};
  std::atomic<int> stopped_by_{SIGTERM};
  std::atomic<bool> begun_{false};
  std::atomic<bool> ended_{false};
  bool interrupted_ = false;  // the waiting thread's alone
  std::mutex mutex_;          // guards the next one
  RunPlace place_;
  sigset_t taken_{}, before_{};
  std::thread thread_;
};

}  // namespace gradring::train
