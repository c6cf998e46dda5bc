// SPDX-License-Identifier: Apache-2.0
#include "train/app/rank/signal_requests.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <system_error>

#include "kernels/base/file.h"
#include "train/launch/workers/signals.h"

namespace gradring::train {
namespace {

/// sigwaitinfo returns blocked signals even if they are ignored, so an ignored SIGHUP must not be blocked.
sigset_t signals_to_take() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGUSR1, SIGUSR2, SIGINT, SIGQUIT}) sigaddset(&set, signal);
  if (!is_ignored(SIGHUP)) sigaddset(&set, SIGHUP);
  return set;
}

/// Terminates the process by the signal's default action; process 1 of a container, which ignores it, exits.
[[noreturn]] void die_of(int signal) {
  ::signal(signal, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::raise(signal);
  ::_exit(128 + signal);
}

}  // namespace

SignalRequests::SignalRequests(std::string name) : name_(std::move(name)), taken_(signals_to_take()) {
  if (const int error = ::pthread_sigmask(SIG_BLOCK, &taken_, &before_))
    throw std::system_error(error, std::generic_category(), "cannot block signals");
  thread_ = std::thread([this] { wait_for_signals(); });
}

SignalRequests::~SignalRequests() {
  ended_ = true;
  ::pthread_kill(thread_.native_handle(), SIGUSR2);  // wakes it
  thread_.join();
  // A request that arrives after the training must not kill the process.
  for (const int signal : {SIGUSR1, SIGUSR2}) sigaddset(&before_, signal);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void SignalRequests::wait_for_signals() {
  while (true) {
    const int signal = ::sigwaitinfo(&taken_, nullptr);
    if (ended_) return;
    if (signal > 0) handle(signal);
  }
}

void SignalRequests::handle(int signal) {
  if (signal == SIGQUIT) return print_position();
  if (signal == SIGUSR2) return ask(RunRequest::save);
  if (signal == SIGHUP) signal = SIGTERM;
  if (!begun_ || (signal == SIGINT && interrupted_)) return die_of(signal);
  interrupted_ = interrupted_ || signal == SIGINT;
  if (signal == SIGINT) stopped_by_ = SIGINT;
  ask(RunRequest::stop);
}

/// A save does not replace a pending stop.
void SignalRequests::ask(RunRequest request) {
  RunRequest before = request_.load();
  while (before < request && !request_.compare_exchange_weak(before, request)) {
  }
}

void SignalRequests::at(const RunPosition& position) {
  begun_ = true;
  const std::lock_guard lock(mutex_);
  position_ = position;
}

void SignalRequests::print_position() {
  RunPosition position;
  {
    const std::lock_guard lock(mutex_);
    position = position_;
  }
  const std::string text =
      begun_ ? fmt::format("{} after step {}, in epoch {}", position.doing, position.steps, position.epoch + 1)
             : "not training yet";
  print_to_stderr(fmt::format("{}, process {}: {}\n", name_, ::getpid(), text));
}

}  // namespace gradring::train
