// SPDX-License-Identifier: Apache-2.0
// The process that watches a program on simulated GPUs: it outlives the program, has its findings however it ends, and
// leaves nothing of it behind.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "train/app/cuda/cuda_program.h"

namespace gradring::train {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

/// The time in which a program that has passed its limit says itself which kernel runs, and ends.
constexpr std::chrono::seconds kGrace(2);

/// The report of a process that used simulated GPUs.
struct Process {
  json report = {
      {"errors", 0}, {"warnings", 0}, {"formal", 0}, {"findings", json::array()}, {"launches", json::array()}};
  /// It wrote the report when it ended. Else findings are here, and how often they were seen is not known.
  bool has_reported = false;
};

void add(json& sum, const json& report) {
  for (const auto& [key, value] : report.items())
    if (value.is_array())
      sum[key].insert(sum[key].end(), value.begin(), value.end());
    else
      sum[key] = sum[key].get<std::uint64_t>() + value.get<std::uint64_t>();
}

std::string pid_of(const std::string& process) { return process.substr(0, process.find('.')); }

std::map<std::string, Process> processes_in(const UniqueFd& record) {
  std::string text(static_cast<std::size_t>(std::max<off_t>(::lseek(record.get(), 0, SEEK_END), 0)), '\0');
  if (::pread(record.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) text.clear();
  std::map<std::string, Process> processes;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const json told = json::parse(line, nullptr, false);
    if (!told.is_object()) continue;  // cut short, without memory for the record
    Process& process = processes[told["process"].get<std::string>()];
    if (told.contains("report")) process = {told["report"], true};
    if (!told.contains("finding")) continue;
    const json& finding = told["finding"];
    const auto severity = finding["severity"].get<std::string>();
    json one = {{"findings", json::array({finding})}};
    if (!finding["suppressed"].get<bool>()) one[severity == "formal" ? severity : severity + "s"] = 1;
    add(process.report, one);
  }
  return processes;
}

void write(const std::string& path, const json& report) {
  std::ofstream file(path);
  file << report.dump(1, ' ', false, json::error_handler_t::replace) << "\n";
  if (!file.flush()) throw DeviceError(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

void kill_children() {
  std::ifstream children(fmt::format("/proc/self/task/{}/children", ::getpid()));
  for (pid_t child = 0; children >> child;) ::kill(child, SIGKILL);
}

/// Kills all that the program started and left: a process whose parent ends becomes a child of this one.
void kill_rest() {
  std::size_t killed = 0;
  for (int status = 0; ::waitpid(-1, &status, WNOHANG) >= 0;) {
    kill_children();
    if (::waitpid(-1, &status, 0) > 0 && WIFSIGNALED(status)) ++killed;
  }
  if (killed > 0)
    print_to_stderr(
        fmt::format("gradring cuda: killed {} process{} that the program left\n", killed, killed == 1 ? "" : "es"));
}

sigset_t watched_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT}) ::sigaddset(&signals, signal);
  return signals;
}

/// Returns   its exit code, 128 + n for signal n; none after `limit`.
std::optional<int> wait_for(pid_t program, std::optional<Clock::time_point> limit) {
  const sigset_t signals = watched_signals();
  for (;;) {
    int status = 0;
    for (pid_t ended; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;)
      if (ended == program) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    const auto rest = limit ? *limit - Clock::now() : Clock::duration(std::chrono::hours(1));
    if (rest <= Clock::duration::zero()) return std::nullopt;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(rest);
    const timespec timeout{.tv_sec = seconds.count(),
                           .tv_nsec = std::chrono::duration_cast<std::chrono::nanoseconds>(rest - seconds).count()};
    siginfo_t info{};
    const int signal = ::sigtimedwait(&signals, &info, &timeout);
    // A terminal gives its signals to the program, too.
    if (signal > 0 && signal != SIGCHLD && info.si_code <= 0) ::kill(program, signal);
  }
}

}  // namespace

ProgramWatch::ProgramWatch() : record_(::memfd_create("gradring-cuda-run", MFD_CLOEXEC)) {
  if (!record_) throw DeviceError(fmt::format("memfd_create failed: {}", std::strerror(errno)));
}

std::string ProgramWatch::record() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), record_.get()); }

int ProgramWatch::run(const std::filesystem::path& program, const Words& words, std::optional<double> limit_s) {
  const sigset_t signals = watched_signals();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  ::signal(SIGCHLD, SIG_DFL);  // if it is ignored, no child can be waited for
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t parent = ::getpid();
  program_ = ::fork();
  if (program_ < 0) throw DeviceError(fmt::format("fork failed: {}", std::strerror(errno)));
  if (program_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(kEnvironment);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    execute(program, words);
  }
  std::optional<Clock::time_point> limit;
  if (limit_s)
    limit =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*limit_s)) + kGrace;
  const std::optional<int> code = wait_for(program_, limit);
  if (!code) print_to_stderr(fmt::format("gradring cuda: the time limit of {} s is over\n", *limit_s));
  kill_rest();
  return code.value_or(simulated_gpu::kTimeLimitExitCode);
}

bool ProgramWatch::report(const std::string& path) const {
  const bool is_for_each = path.find("%p") != path.npos;
  json sum = Process{}.report;
  for (const auto& [name, process] : processes_in(record_)) {
    const json& report = process.report;
    const std::string pid = pid_of(name);
    add(sum, report);
    if (!process.has_reported && (pid == std::to_string(program_) || !report["findings"].empty()))
      print_to_stderr(fmt::format("simulated GPU: process {} ended without a summary; errors: {}, warnings: {}\n", pid,
                                  report["errors"].get<int>(), report["warnings"].get<int>()));
    if (!is_for_each) continue;
    std::string own = path;
    write(own.replace(path.find("%p"), 2, pid), report);
  }
  if (!path.empty() && !is_for_each) write(path, sum);
  return sum["errors"] != 0;
}

}  // namespace gradring::train
