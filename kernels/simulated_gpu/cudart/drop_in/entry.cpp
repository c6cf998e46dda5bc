// SPDX-License-Identifier: Apache-2.0
// The begin and the end of another program's process: options from its environment, and what is printed at the end.
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>
#include <regex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "kernels/simt/engine/kernel_name.h"
#include "kernels/simulated_gpu/counters/counters_table.h"
#include "kernels/simulated_gpu/cudart/drop_in/rejection.h"
#include "kernels/simulated_gpu/cudart/runtime.h"
#include "kernels/simulated_gpu/run_options.h"

namespace gradring::simulated_gpu {
namespace {

constexpr int kBadOptionsExitCode = 125;
/// Whether a call failed because the process is a copy by fork of one that used CUDA.
std::atomic<bool> has_failed_copy{false};

/// Never destroyed: threads read it until the process ends.
RunOptions& options() {
  static auto* const only = new RunOptions;
  return *only;
}

/// "4711.83": the process, and when it began to use the library, as a number of the clock.
std::string& process_name() {
  static auto* const only = new std::string;
  return *only;
}

void flush_all() {
  std::cout.flush();
  std::fflush(nullptr);
}

/// Ends the process here, so that no other code changes the exit code.
[[noreturn]] void end_with(int code) {
  flush_all();
  ::_exit(code);
}

/// Of a file; empty without a path.
///
/// Errors    InvalidArgument if it cannot be read.
std::string text_in(const std::string& path) {
  if (path.empty()) return "";
  std::ifstream file(path);
  if (!file) throw InvalidArgument("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The launches of kernels whose name has a part that matches `kernel`, a regular expression; all if it is empty.
std::vector<const LaunchCounts*> counted_launches(std::span<const CountedWork> work, const std::string& kernel) {
  const std::regex pattern(kernel);
  std::vector<const LaunchCounts*> launches;
  for (const CountedWork& one : work)
    if (one.launch && (kernel.empty() || std::regex_search(one.launch->kernel, pattern)))
      launches.push_back(&*one.launch);
  return launches;
}

/// A table with a row for each launch, equal ones once, and the lines that cost most.
std::string counters_text(std::span<const LaunchCounts* const> launches) {
  struct Row {
    std::string text;
    std::size_t launches = 0;
  };
  std::vector<Row> rows;
  for (const LaunchCounts* launch : launches) {
    std::string text = counters_row(*launch);
    const auto known = std::ranges::find(rows, text, &Row::text);
    if (known == rows.end())
      rows.push_back({std::move(text), 1});
    else
      ++known->launches;
  }
  std::string all = counters_header() + "\n";
  for (const Row& row : rows)
    all += row.text + (row.launches > 1 ? "  (" + std::to_string(row.launches) + " launches)" : "") + "\n";
  return all + costly_lines(merged_lines(launches));
}

/// FindingLog::json() with the member "launches".
std::string report_json(const FindingLog& findings, std::span<const LaunchCounts* const> launches) {
  nlohmann::json report = nlohmann::json::parse(findings.json());
  report["launches"] = nlohmann::json::array();
  for (const LaunchCounts* launch : launches) report["launches"].push_back(to_json(*launch));
  return report.dump(options().record.empty() ? 1 : -1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Tells the process that watches: a line of its record, which is written as one.
void record(const char* what, const std::string& json) {
  if (options().record.empty()) return;
  const std::string line = "{\"process\": \"" + process_name() + "\", \"" + what + "\": " + json + "}\n";
  const int file = ::open(options().record.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  const bool is_written = file >= 0 && ::write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  if (file >= 0) ::close(file);
  if (!is_written)
    std::fprintf(stderr, "simulated GPU: cannot report to gradring cuda run by %s\n", options().record.c_str());
}

void note_finding(const std::string& json) {
  if (is_left_to_parent()) has_failed_copy = true;
  record("finding", json);
}

void write_report(const FindingLog& findings, std::span<const LaunchCounts* const> launches) {
  if (!options().record.empty()) return record("report", report_json(findings, launches));
  if (options().json.empty()) return;
  std::ofstream file(options().json);
  file << report_json(findings, launches) << "\n";
  if (!file.flush()) std::fprintf(stderr, "simulated GPU: cannot write %s\n", options().json.c_str());
}

/// Other threads of the program may go on meanwhile.
std::vector<CountedWork> end_counting(Runtime& rt) {
  const std::lock_guard lock(rt.mutex);
  return rt.counting.end();
}

/// Reports what is known; whether there were errors.
bool summarize(Runtime& rt) {
  rt.print_device_output();
  const std::vector<CountedWork> work = options().counters ? end_counting(rt) : std::vector<CountedWork>();
  const std::vector<const LaunchCounts*> launches = counted_launches(work, options().kernel);
  if (options().counters) std::fprintf(stderr, "%s", counters_text(launches).c_str());
  std::fprintf(stderr, "simulated GPU: %s\n", rt.faults.summary().c_str());
  write_report(rt.faults, launches);
  return rt.faults.count(Severity::error) > 0;
}

/// After what the program registered by atexit, and its static destructors: they were registered later.
void end(int exit_code, void*) {
  const bool is_in_host_function = this_thread().in_host_function;  // the program goes on in other threads
  Runtime* const rt = is_left_to_parent() ? nullptr : end_of_process();
  if (rt == nullptr && !is_left_to_parent()) return write_report(FindingLog(), {});
  const bool has_errors = rt != nullptr ? summarize(*rt) : has_failed_copy.load();
  if (has_errors && exit_code == 0 && options().error_exitcode) end_with(*options().error_exitcode);
  if (is_in_host_function) end_with(exit_code);
}

void name_process() {
  process_name() =
      std::to_string(::getpid()) + "." + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count());
}

void begin_copy_by_fork() {
  leave_to_parent();
  name_process();
}

void end_after(std::chrono::duration<double> limit) {
  std::this_thread::sleep_for(limit);
  Runtime& rt = runtime();  // not stopped: calls that wait must not return to the program
  const ptx::Kernel* const running = rt.running;
  const std::string what =
      running ? "kernel " + simt::short_name_of(simt::demangled(std::string(running->name).c_str())) : "no kernel";
  std::fprintf(stderr, "simulated GPU: the time limit of %g s is over: %s runs now; raise it by --time-limit\n",
               limit.count(), what.c_str());
  summarize(rt);
  end_with(kTimeLimitExitCode);
}

void begin() {
  if (const char* const text = std::getenv(kRunOptionsVariable)) options() = run_options_from(text);
  name_process();
  ::pthread_atfork(nullptr, nullptr, &begin_copy_by_fork);
  leave_end_to_caller();
  configure({.card = options().gpu,
             .devices = options().gpus,
             .seed = options().seed,
             .threads = options().threads,
             .findings = {.goes_on = true, .formal = options().formal, .suppressions = text_in(options().suppressions)},
             .is_strict = false,
             .counts = options().counters,
             .on_finding = &note_finding});
  ::on_exit(&end, nullptr);
  record("began", "true");
  if (options().time_limit_s) std::thread(&end_after, std::chrono::duration<double>(*options().time_limit_s)).detach();
}

__attribute__((constructor)) void begin_or_end() {
  try {
    begin();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "simulated GPU: %s\n", error.what());
    ::_exit(kBadOptionsExitCode);
  }
}

}  // namespace

int rejected(const char* name) { return misused(name, {cudaErrorNotSupported, "is not simulated"}); }

}  // namespace gradring::simulated_gpu
