// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/metrics.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <system_error>

#include "train/records/metrics/environment_error.h"
#include "train/records/metrics/metrics_lines.h"
#include "train/records/metrics/run_events_json.h"

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

std::string reason_of(int error) { return std::generic_category().message(error); }

[[noreturn]] void throw_unreadable(const std::filesystem::path& path, const std::string& why) {
  throw EnvironmentError("cannot read " + path.string() + ": " + why + "; nothing was removed from it");
}

}  // namespace

JsonLinesSink::JsonLinesSink(const FileAt& file, std::chrono::milliseconds moment)
    : at_(file),
      file_(
          file, [this](const std::string& next) { return header_before(next); }, moment) {}

void JsonLinesSink::event(const RunEvent& event) {
  if (const auto* header = std::get_if<RunHeader>(&event)) {
    header_ = *header;
    steps_ = header->resumed_from;
  }
  if (const auto* step = std::get_if<StepRecord>(&event)) steps_ = step->step;
  file_.append(to_line({.time = seconds_since_1970(), .event = event}));
}

/// The header of this start, as that of a run that resumes before the event `next`; empty if that is a header.
std::string JsonLinesSink::header_before(const std::string& next) const {
  const std::optional<TimedEvent> event = from_line(next);
  if (!header_ || (event && std::holds_alternative<RunHeader>(event->event))) return {};
  RunHeader header = *header_;
  const auto* step = event ? std::get_if<StepRecord>(&event->event) : nullptr;
  header.resumed_from = step ? step->step - 1 : steps_;
  return to_line({.time = event ? event->time : seconds_since_1970(), .event = header}) + '\n';
}

void JsonLinesSink::rolled_back(std::int64_t steps, std::int64_t epochs) {
  steps_ = steps;
  file_.edit([&] { truncate_metrics(at_, steps, epochs); },
             [&](const std::string& line) { return is_kept(line, {.steps = steps, .epochs = epochs}); });
}

void check_metrics(const FileAt& file) {
  struct stat facts {};
  const int error = ::fstatat(file.directory(), file.name(), &facts, 0) == 0 ? 0 : errno;
  if (error == ENOENT || error == ENOTDIR) return;
  if (error != 0 || !S_ISREG(facts.st_mode))
    throw_unreadable(file.path(), error != 0 ? reason_of(error) : "it is not a regular file");
  const LineFile opened(file);
}

void truncate_metrics(const FileAt& file, std::int64_t steps, std::int64_t epochs) {
  check_metrics(file);
  const UniqueFd fd = open_file(file, O_RDWR);
  if (!fd && (errno == ENOENT || errno == ENOTDIR)) return;
  if (!fd) throw_unreadable(file.path(), reason_of(errno));
  FileLines lines(fd);
  std::uint64_t read = 0, kept = 0;
  bool is_before = true;
  std::vector<std::string> faults;
  while (lines.next() && lines.is_complete() && lines.bytes() <= kMostSkippedBytes) {
    read += lines.bytes();
    const std::optional<TimedEvent> event = from_line(lines.line());
    if (!event) continue;  // damaged, or of a newer version: kept if an event behind it is
    is_before = is_before && std::visit(HadHappened{.steps = steps, .epochs = epochs}, event->event);
    if (is_before)
      kept = read;
    else if (std::holds_alternative<FaultRecord>(event->event))
      faults.push_back(lines.line());
  }
  if (lines.has_failed()) throw_unreadable(file.path(), "a read failed");
  if (::ftruncate(fd.get(), static_cast<off_t>(kept)) != 0)
    throw EnvironmentError("cannot truncate " + file.path().string() + ": " + reason_of(errno));
  if (faults.empty()) return;
  LineFile kept_faults(file);
  for (const std::string& fault : faults) kept_faults.append(fault);
}

}  // namespace gradring::train
