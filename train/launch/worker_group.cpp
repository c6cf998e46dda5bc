// SPDX-License-Identifier: Apache-2.0
#include "train/launch/worker_group.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "kernels/runtime/poll_timeout.h"
#include "train/launch/error_file.h"
#include "train/launch/progress_file.h"
#include "train/launch/worker_place.h"

namespace gradring::train {
namespace {

/// A killed process ends at once, unless the kernel holds on to it; then there is nothing to wait for.
constexpr auto kPatienceAfterKill = std::chrono::seconds(1);

Variables joined(Variables some, const Variables& more) {
  some.insert(some.end(), more.begin(), more.end());
  return some;
}

}  // namespace

WorkerGroup::WorkerGroup(const LaunchOptions& options, Terminals& terminals)
    : options_(options),
      terminals_(terminals),
      signals_(options.handled_signals),
      guard_(folder_.path()),
      logs_(options.logs, options.run_id),
      place_(only_node(options)),
      address_(options.local_addr) {}

WorkerGroup::~WorkerGroup() { kill_all(); }

void WorkerGroup::start(int attempt) try {
  prepare(attempt);
  for (int local_rank = 0; local_rank < options_.nproc_per_node; ++local_rank) start_worker(local_rank, attempt);
} catch (...) {
  kill_all();
  throw;
}

void WorkerGroup::prepare(int attempt) {
  workers_.clear();
  if (std::exchange(prepared_for_, attempt) != attempt) folder_.renew();
}

void WorkerGroup::start_worker(int local_rank, int attempt) {
  WorkerEnvironment place = place_of(options_, place_, local_rank, attempt);
  const LineOwner owner{options_.role, place.rank, local_rank, place.group_rank};
  const auto log_folder = logs_.of_worker(attempt, local_rank);
  OutputStream out(logs_.route(Stream::out, owner, log_folder), terminals_.out);
  OutputStream err(logs_.route(Stream::err, owner, log_folder), terminals_.err);
  place.error_file = log_folder.empty() ? folder_.error_file(local_rank) : log_folder / "error.json";
  place.store_path = folder_.store();
  place.node_address = address_;
  place.progress_file = folder_.progress_file(local_rank);

  const Variables own =
      joined(joined(place.to_variables(), run_variables(options_)), device_variables(options_, local_rank));
  const WorkerCommand command{options_.program, arguments_of(options_, local_rank),
                              extended_environment(own, default_variables(options_.nproc_per_node, usable_cores())),
                              out.worker_end(), err.worker_end()};
  auto process = WorkerProcess::start(place.rank, command, signals_, guard_);
  out.close_worker_end();
  err.close_worker_end();
  workers_.push_back({std::move(process), std::move(out), std::move(err), place.error_file});
}

void WorkerGroup::kill_all() noexcept {
  send(SIGKILL);
  const auto deadline = Deadline::after(kPatienceAfterKill);
  for (auto& [process, out, err, error_file] : workers_) {
    pollfd ended = {process.fd(), POLLIN, 0};
    if (process.running() && ::poll(&ended, 1, poll_timeout(deadline)) > 0) guard_.forget(process.reap().pid);
  }
}

bool WorkerGroup::running() const {
  return std::ranges::any_of(workers_, [](const Worker& worker) { return worker.process.running(); });
}

std::string WorkerGroup::running_names() const {
  std::string names;
  for (const auto& worker : workers_)
    if (worker.process.running())
      names +=
          fmt::format("{}rank {} (pid {})", names.empty() ? "" : ", ", worker.process.rank(), worker.process.pid());
  return names;
}

WorkerEvents WorkerGroup::wait(std::optional<Deadline> deadline, const std::vector<int>& others) {
  std::vector<pollfd> sources = {
      {signals_.fd(), POLLIN, 0}, {terminals_.out.fd(), POLLOUT, 0}, {terminals_.err.fd(), POLLOUT, 0}};
  for (const auto& worker : workers_)  // poll skips fd -1
    for (const int fd : {worker.out.fd(), worker.err.fd(), worker.process.fd()}) sources.push_back({fd, POLLIN, 0});
  for (const int fd : others) sources.push_back({fd, POLLIN, 0});
  WorkerEvents events;
  if (::poll(sources.data(), sources.size(), poll_timeout(deadline)) <= 0) return events;
  terminals_.out.catch_up();
  terminals_.err.catch_up();
  const pollfd* source = sources.data() + 3;
  for (auto& worker : workers_) {
    if (source[0].revents != 0) worker.out.pass_on();
    if (source[1].revents != 0) worker.err.pass_on();
    if (source[2].revents != 0) events.exits.push_back(reap(worker));
    source += 3;
  }
  events.signal = signals_.take();
  return events;
}

WorkerExit WorkerGroup::reap(Worker& worker) {
  WorkerExit exit = worker.process.reap();
  guard_.forget(exit.pid);
  worker.out.finish();
  worker.err.finish();
  if (auto report = read_error_file(worker.error_file)) exit.message = std::move(report->message);
  return exit;
}

void WorkerGroup::send(int number) noexcept {
  for (auto& worker : workers_)
    if (worker.process.running()) worker.process.send(number);
}

void WorkerGroup::suspend() {
  send(SIGSTOP);
  signals_.stop_self();
  send(SIGCONT);
}

std::optional<std::int64_t> WorkerGroup::furthest_step() const {
  std::optional<std::int64_t> furthest;
  for (int local_rank = 0; local_rank < options_.nproc_per_node; ++local_rank)
    furthest = std::max(furthest, read_progress(folder_.progress_file(local_rank)));
  return furthest;
}

}  // namespace gradring::train
