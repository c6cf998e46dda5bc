// SPDX-License-Identifier: Apache-2.0
#include "train/launch/worker_group.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "train/launch/error_file.h"

namespace gradring::train {
namespace {

/// A killed process ends at once, unless the kernel holds on to it; then there is nothing to wait for.
constexpr auto kPatienceAfterKill = std::chrono::seconds(1);

int poll_timeout(const std::optional<Deadline>& deadline) noexcept {
  if (!deadline) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline->remaining()).count();
  return static_cast<int>(std::min<decltype(left)>(left, 1 << 30));
}

}  // namespace

WorkerGroup::WorkerGroup(const LaunchOptions& options) : guard_(folder_.path()) {
  try {
    for (int rank = 0; rank < options.nproc_per_node; ++rank)
      workers_.push_back(WorkerProcess::start(rank, command_of(options, rank), signals_, guard_));
  } catch (...) {
    kill_all();
    throw;
  }
}

WorkerGroup::~WorkerGroup() { kill_all(); }

void WorkerGroup::kill_all() noexcept {
  send(SIGKILL);
  const auto deadline = Deadline::after(kPatienceAfterKill);
  for (auto& worker : workers_) {
    pollfd ended = {worker.fd(), POLLIN, 0};
    if (worker.running() && ::poll(&ended, 1, poll_timeout(deadline)) > 0) guard_.forget(worker.reap().pid);
  }
}

WorkerCommand WorkerGroup::command_of(const LaunchOptions& options, int local_rank) const {
  const int size = options.nproc_per_node;
  // On one node the ranks of all worlds are the same.
  const WorkerEnvironment place{.rank = local_rank,
                                .world_size = size,
                                .local_rank = local_rank,
                                .local_world_size = size,
                                .role_rank = local_rank,
                                .role_world_size = size,
                                .role_name = options.role,
                                .master_addr = options.master_addr,
                                .master_port = options.master_port,
                                .run_id = options.run_id,
                                .max_restarts = options.max_restarts,
                                .error_file = folder_.error_file(local_rank),
                                .store_path = folder_.store()};
  return {options.program, options.arguments,
          extended_environment(place.to_variables(), default_variables(size, usable_cores()))};
}

bool WorkerGroup::running() const { return std::ranges::any_of(workers_, &WorkerProcess::running); }

std::string WorkerGroup::running_names() const {
  std::string names;
  for (const auto& worker : workers_)
    if (worker.running())
      names += fmt::format("{}rank {} (pid {})", names.empty() ? "" : ", ", worker.rank(), worker.pid());
  return names;
}

WorkerEvents WorkerGroup::wait(std::optional<Deadline> deadline) {
  std::vector<pollfd> sources = {{signals_.fd(), POLLIN, 0}};
  for (const auto& worker : workers_) sources.push_back({worker.fd(), POLLIN, 0});  // poll skips fd -1
  WorkerEvents events;
  if (::poll(sources.data(), sources.size(), poll_timeout(deadline)) <= 0) return events;
  for (std::size_t i = 0; i < workers_.size(); ++i)
    if (sources[i + 1].revents != 0) events.exits.push_back(reap(workers_[i]));
  events.signal = signals_.take();
  return events;
}

WorkerExit WorkerGroup::reap(WorkerProcess& worker) {
  WorkerExit exit = worker.reap();
  guard_.forget(exit.pid);
  if (auto report = read_error_file(folder_.error_file(exit.rank))) exit.message = std::move(report->message);
  return exit;
}

void WorkerGroup::send(int number) noexcept {
  for (auto& worker : workers_)
    if (worker.running()) worker.send(number);
}

void WorkerGroup::suspend() {
  send(SIGSTOP);
  signals_.stop_self();
  send(SIGCONT);
}

}  // namespace gradring::train
