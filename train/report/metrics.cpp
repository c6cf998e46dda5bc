// SPDX-License-Identifier: Apache-2.0
#include "train/report/metrics.h"

#include <cerrno>
#include <chrono>
#include <fstream>
#include <optional>
#include <system_error>

#include "train/report/environment_error.h"
#include "train/report/run_events_json.h"

namespace gradring::train {

namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Whether an event had happened when `steps` steps and `epochs` epochs were completed.
struct HadHappened {
  std::int64_t steps = 0;
  std::int64_t epochs = 0;

  bool operator()(const EvalRecord& record) const {
    return record.step <= steps && (!record.ends_epoch || record.epoch <= epochs);
  }
  /// Faults are kept: steps that they undid are repeated, but they are not.
  bool operator()(const FaultRecord&) const { return true; }
  bool operator()(const RunHeader& record) const { return record.resumed_from <= steps; }
  bool operator()(const EndRecord& record) const { return record.steps <= steps; }
  bool operator()(const auto& record) const { return record.step <= steps; }
};

bool is_kept(const std::string& line, HadHappened had_happened) {
  const std::optional<TimedEvent> event = from_line(line);
  return event && std::visit(had_happened, event->event);
}

bool is_fault(const std::string& line) {
  const std::optional<TimedEvent> event = from_line(line);
  return event && std::holds_alternative<FaultRecord>(event->event);
}

[[noreturn]] void throw_unreadable(const std::filesystem::path& path, const std::string& why) {
  throw EnvironmentError("cannot read " + path.string() + ": " + why + "; nothing was removed from it");
}

}  // namespace

void JsonLinesSink::event(const RunEvent& event) {
  file_.append(to_line({.time = seconds_since_1970(), .event = event}));
}

void JsonLinesSink::rolled_back(std::int64_t steps, std::int64_t epochs) {
  file_.edit([&] { truncate_metrics(path_, steps, epochs); },
             [&](const std::string& line) { return is_kept(line, {.steps = steps, .epochs = epochs}); });
}

void check_metrics(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) return;
  if (!std::filesystem::is_regular_file(status))
    throw_unreadable(path, error ? error.message() : "it is not a regular file");
  const LineFile opened(path);
}

void truncate_metrics(const std::filesystem::path& path, std::int64_t steps, std::int64_t epochs) {
  check_metrics(path);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return;
  std::ifstream file(path);
  if (!file) throw_unreadable(path, std::generic_category().message(errno));
  std::uintmax_t kept = 0;
  std::string line;
  while (std::getline(file, line) && !file.eof() && is_kept(line, {.steps = steps, .epochs = epochs}))
    kept += line.size() + 1;
  std::vector<std::string> faults;
  for (; file && !file.eof(); std::getline(file, line))
    if (is_fault(line)) faults.push_back(line);
  if (file.bad()) throw_unreadable(path, "a read failed");
  std::filesystem::resize_file(path, kept, error);
  if (error) throw EnvironmentError("cannot truncate " + path.string() + ": " + error.message());
  if (faults.empty()) return;
  LineFile kept_faults(path);
  for (const std::string& fault : faults) kept_faults.append(fault);
}

}  // namespace gradring::train
