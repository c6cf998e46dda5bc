// SPDX-License-Identifier: Apache-2.0
#include "train/launch/workers/worker_group.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "kernels/base/deadline.h"
#include "kernels/base/error.h"
#include "kernels/base/process_limit.h"
#include "kernels/base/processors.h"
#include "train/launch/workers/host.h"
#include "train/launch/workers/worker_files.h"
#include "train/options/error_report.h"

namespace gradring::train {
namespace {

// glibc 2.36 declares it, but without extern "C".
int pidfd_open(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

/// Null-terminated array for exec, valid as long as `texts`.
std::vector<char*> c_strings(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const auto& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

/// The child between fork and exec: only async-signal-safe calls and memory allocated before.
[[noreturn]] void become(const WorkerCommand& command, char* const* argv, char* const* environment, pid_t launcher,
                         const ProcessState& state, Reaper& reaper, int exec_error) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(kCannotExecute);  // the launcher died before prctl
  reaper.watch(::getpid());
  state.restore_in_child();
  if (command.out >= 0) ::dup2(command.out, STDOUT_FILENO);
  if (command.err >= 0) ::dup2(command.err, STDERR_FILENO);
  ::execvpe(command.program.c_str(), argv, environment);
  const int reason = errno;
  [[maybe_unused]] const auto written = ::write(exec_error, &reason, sizeof(reason));
  ::_exit(reason == ENOENT ? kNotFound : kCannotExecute);
}

DeviceError cannot_start(int rank, const std::string& reason) {
  return DeviceError(fmt::format("cannot start the worker of rank {}: {}", rank, reason));
}

/// A killed process ends at once unless it is blocked in the kernel; then waiting is pointless.
constexpr auto kWaitAfterKill = std::chrono::seconds(1);
/// Between looks at workers that have no pidfd.
constexpr auto kBetweenLooks = std::chrono::milliseconds(20);

WorkerEnvironment environment_of(const LaunchOptions& options, const NodeAssignment& node, int local_rank,
                                 int attempt) {
  return {.rank = node.first_rank + local_rank,
          .world_size = node.world_size,
          .local_rank = options.virtual_local_rank ? 0 : local_rank,
          .local_world_size = options.nproc_per_node,
          .group_rank = node.node,
          .group_world_size = node.nodes,
          .role_rank = node.first_role_rank + local_rank,
          .role_world_size = node.role_world_size,
          .role_name = options.role,
          .master_addr = options.master_addr,
          .master_port = node.master_port,
          .run_id = options.run_id,
          .restart_count = attempt,
          .max_restarts = options.restarts.most};
}

/// The arguments with ${local_rank} replaced, as torchrun does.
std::vector<std::string> arguments_of(const LaunchOptions& options, int local_rank) {
  constexpr std::string_view kMacro = "${local_rank}";
  std::vector<std::string> arguments = options.arguments;
  for (std::string& text : arguments)
    for (auto at = text.find(kMacro); at != std::string::npos; at = text.find(kMacro, at))
      text.replace(at, kMacro.size(), std::to_string(local_rank));
  return arguments;
}

/// TORCHELASTIC_SIGNALS_TO_HANDLE, as torchrun sets it, and CUDA_VISIBLE_DEVICES unless the launcher's is inherited.
void add_launch_variables(const LaunchOptions& options, int local_rank, Variables& variables) {
  std::vector<std::string> names;
  for (const int signal : options.handled_signals) names.push_back(signal_name(signal));
  variables.emplace_back("TORCHELASTIC_SIGNALS_TO_HANDLE", fmt::format("{}", fmt::join(names, ",")));
  if (options.devices.empty()) return;
  variables.emplace_back("CUDA_VISIBLE_DEVICES", options.virtual_local_rank
                                                     ? options.devices.at(static_cast<std::size_t>(local_rank))
                                                     : fmt::format("{}", fmt::join(options.devices, ",")));
}

/// This process's environment without the agents' token, with `defaults` where unset and `overrides` in any case.
std::vector<std::string> extended_environment(const Variables& overrides, const Variables& defaults) {
  std::map<std::string, std::string> merged(defaults.begin(), defaults.end());
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (char* sign = std::strchr(*entry, '=')) merged[std::string(*entry, sign)] = sign + 1;
  for (const char* secret : {kTokenVariable, kTokenFileVariable}) merged.erase(secret);
  for (const auto& [name, value] : overrides) merged[name] = value;

  std::vector<std::string> environment;
  for (const auto& [name, value] : merged) environment.push_back(name + "=" + value);
  return environment;
}

}  // namespace

WorkerProcess WorkerProcess::start(int rank, const WorkerCommand& command, const ProcessState& state, Reaper& reaper) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw cannot_start(rank, reason_of_failed_fork(errno));
  WorkerProcess worker;
  worker.rank_ = rank;
  worker.exec_error_ = UniqueFd(ends[0]);
  const UniqueFd child_end(ends[1]);

  std::vector<std::string> command_line = {command.program};
  command_line.insert(command_line.end(), command.arguments.begin(), command.arguments.end());
  const auto argv = c_strings(command_line);
  const auto environment = c_strings(command.environment);
  const pid_t launcher = ::getpid();
  worker.pid_ = ::fork();
  if (worker.pid_ < 0) throw cannot_start(rank, reason_of_failed_fork(errno));
  if (worker.pid_ == 0) become(command, argv.data(), environment.data(), launcher, state, reaper, child_end.get());

  worker.end_ = UniqueFd(pidfd_open(worker.pid_));  // always CLOEXEC
  worker.running_ = true;
  return worker;
}

// A child's pid cannot be reused before reap(), so that it serves as well as a pidfd.
bool WorkerProcess::ended() const noexcept {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
}

void WorkerProcess::send(int number) noexcept {
  sent_.set(static_cast<std::size_t>(number));
  // Just after fork the group does not exist yet.
  if (!signal_group(pid_, number)) ::kill(pid_, number);
}

WorkerExit WorkerProcess::reap() noexcept {
  // The zombie still holds the group number, so no other group can have it.
  signal_group(pid_, SIGKILL);
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED) != 0 && errno == EINTR) {
  }
  end_.reset();
  running_ = false;

  WorkerExit exit{.rank = rank_, .pid = pid_, .sent = sent_};
  (info.si_code == CLD_EXITED ? exit.code : exit.signal) = info.si_status;
  int reason = 0;
  if (::read(exec_error_.get(), &reason, sizeof(reason)) == sizeof(reason)) exit.exec_error = reason;
  return exit;
}

WorkerGroup::WorkerGroup(const LaunchOptions& options, Terminals& terminals)
    : options_(options),
      terminals_(terminals),
      state_{.signals = SignalScope(options.handled_signals)},
      logs_(options.logs, options.run_id),
      assignment_{.world_size = options.nproc_per_node,
                  .role_world_size = options.nproc_per_node,
                  .master_port = options.master_port},
      address_(options.local_addr) {
  // At least, without log files: of a worker its pidfd and the pipe of its exec. poll() takes three entries of it, and
  // no more than open files.
  constexpr std::size_t kLeastOfAWorker = 3, kOfTheAgent = 24;
  require_descriptors(kOfTheAgent + kLeastOfAWorker * static_cast<std::size_t>(options.nproc_per_node),
                      fmt::format("the launcher of {} processes", options.nproc_per_node));
  state_.control_group = make_control_group(folder_.path());
  reaper_.remove_on_death(folder_);
}

WorkerGroup::~WorkerGroup() {
  kill_all();
  remove_control_group(folder_.path());
}

void WorkerGroup::start(int attempt) try {
  prepare(attempt);
  if (options_.master_port == 0) assignment_.master_port = free_tcp_port();
  for (int local_rank = 0; local_rank < options_.nproc_per_node; ++local_rank) start_worker(local_rank, attempt);
} catch (...) {
  kill_all();
  throw;
}

void WorkerGroup::prepare(int attempt) {
  workers_.clear();
  leaves_daemons_ = true;
  if (std::exchange(prepared_for_, attempt) != attempt) folder_.renew();
}

void WorkerGroup::start_worker(int local_rank, int attempt) {
  WorkerEnvironment environment = environment_of(options_, assignment_, local_rank, attempt);
  const LineOwner owner{options_.role, environment.rank, local_rank, environment.group_rank};
  const auto log_folder = logs_.worker_folder(attempt, local_rank);
  OutputStream out(logs_.route(Stream::out, owner, log_folder), terminals_.out, terminals_.on_log_failure);
  OutputStream err(logs_.route(Stream::err, owner, log_folder), terminals_.err, terminals_.on_log_failure);
  environment.error_file = log_folder.empty() ? folder_.error_file(local_rank) : log_folder / "error.json";
  environment.store_path = folder_.store();
  environment.node_address = address_;
  environment.progress_file = folder_.progress_file(local_rank);

  Variables variables = environment.to_variables();
  add_launch_variables(options_, local_rank, variables);
  const WorkerCommand command{
      options_.program, arguments_of(options_, local_rank),
      extended_environment(variables, default_variables(options_.nproc_per_node, usable_processors())),
      out.worker_end(), err.worker_end()};
  auto process = WorkerProcess::start(environment.rank, command, state_, reaper_);
  out.close_worker_end();
  err.close_worker_end();
  workers_.push_back({std::move(process), std::move(out), std::move(err), environment.error_file});
}

/// For the end of an attempt, the destructor and a failed start: reads no error files, and does not wait for processes
/// that are blocked in the kernel.
void WorkerGroup::kill_all() noexcept {
  send(SIGKILL);
  const auto deadline = Deadline::after(kWaitAfterKill);
  for (Worker& worker : workers_) {
    WorkerProcess& process = worker.process;
    if (!process.running()) continue;
    leaves_daemons_ = false;
    if (poll_until([&] { return process.ended(); }, deadline)) reaper_.forget(process.reap().pid);
  }
  if (!leaves_daemons_) kill_run_processes(folder_.path(), kWaitAfterKill, ::getpid());
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

WorkerEvents WorkerGroup::wait(std::optional<Deadline> deadline, const std::vector<pollfd>& others) {
  std::vector<pollfd> sources = {
      {state_.signals.fd(), POLLIN, 0}, {terminals_.out.fd(), POLLOUT, 0}, {terminals_.err.fd(), POLLOUT, 0}};
  for (const auto& worker : workers_)  // poll ignores fd -1
    for (const int fd : {worker.out.fd(), worker.err.fd(), worker.process.fd()}) sources.push_back({fd, POLLIN, 0});
  sources.insert(sources.end(), others.begin(), others.end());
  const bool looks =
      std::ranges::any_of(workers_, [](const Worker& worker) { return worker.process.must_be_polled(); });
  std::optional<Deadline> until = looks ? earlier(deadline, Deadline::after(kBetweenLooks)) : deadline;
  WorkerEvents events;
  for (const auto& worker : workers_) until = earlier(until, earlier(worker.out.line_due(), worker.err.line_due()));
  const int ready = ::poll(sources.data(), sources.size(), poll_timeout(until));
  for (auto& worker : workers_) {
    worker.out.show_line();
    worker.err.show_line();
  }
  if (ready < 0 || (ready == 0 && !looks)) return events;
  terminals_.out.catch_up();
  terminals_.err.catch_up();
  const pollfd* source = sources.data() + 3;
  for (auto& worker : workers_) {
    if (source[0].revents != 0) worker.out.forward();
    if (source[1].revents != 0) worker.err.forward();
    const bool ended = worker.process.must_be_polled() ? worker.process.ended() : source[2].revents != 0;
    if (ended) events.exits.push_back(reap(worker));
    source += 3;
  }
  if (!events.exits.empty() && !running()) kill_all();
  reap_adopted();
  events.signal = state_.signals.take();
  return events;
}

void WorkerGroup::reap_adopted() {
  reap_adopted_children([this](pid_t pid) {
    reaper_.note_end(pid);
    return std::ranges::any_of(
        workers_, [pid](const Worker& worker) { return worker.process.running() && worker.process.pid() == pid; });
  });
}

WorkerExit WorkerGroup::reap(Worker& worker) {
  WorkerExit exit = worker.process.reap();
  if (exit.failed() || exit.was_asked_to_end()) leaves_daemons_ = false;
  reaper_.forget(exit.pid);
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
  state_.signals.stop_self();
  send(SIGCONT);
}

std::optional<std::int64_t> WorkerGroup::furthest_step() const {
  std::optional<std::int64_t> furthest;
  for (int local_rank = 0; local_rank < options_.nproc_per_node; ++local_rank)
    furthest = std::max(furthest, read_progress(folder_.progress_file(local_rank)));
  return furthest;
}

}  // namespace gradring::train
