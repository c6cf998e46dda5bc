// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/metrics.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <streambuf>
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

/// Reads an open file from its start.
class DescriptorBuffer final : public std::streambuf {
 public:
  explicit DescriptorBuffer(const UniqueFd& fd) : fd_(fd) {}
  bool has_failed() const { return has_failed_; }

 protected:
  int_type underflow() override {
    ssize_t count = 0;
    do count = ::read(fd_.get(), part_.data(), part_.size());
    while (count < 0 && errno == EINTR);
    has_failed_ = has_failed_ || count < 0;
    if (count <= 0) return traits_type::eof();
    setg(part_.data(), part_.data(), part_.data() + count);
    return traits_type::to_int_type(part_[0]);
  }

 private:
  const UniqueFd& fd_;
  std::array<char, 64 * 1024> part_{};
  bool has_failed_ = false;
};

/// Reads a line, of a longer one the first kMostLineBytes.
///
/// Returns   its bytes in the file, with the line break; 0 at the end, at an incomplete line and at one of more than
///           kMostSkippedBytes.
off_t next_line(std::streambuf& from, std::string& line) {
  line.clear();
  constexpr auto kEnd = std::streambuf::traits_type::eof();
  std::uint64_t bytes = 1;
  for (auto c = from.sbumpc(); c != kEnd && bytes <= kMostSkippedBytes; c = from.sbumpc(), ++bytes) {
    if (c == '\n') return static_cast<off_t>(bytes);
    if (line.size() < kMostLineBytes) line += static_cast<char>(c);
  }
  return 0;
}

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
  DescriptorBuffer buffer(fd);
  std::string line;
  off_t read = 0, kept = 0;
  bool is_before = true;
  std::vector<std::string> faults;
  while (const off_t bytes = next_line(buffer, line)) {
    read += bytes;
    const std::optional<TimedEvent> event = from_line(line);
    if (!event) continue;  // damaged, or of a newer version: kept if an event behind it is
    is_before = is_before && std::visit(HadHappened{.steps = steps, .epochs = epochs}, event->event);
    if (is_before)
      kept = read;
    else if (std::holds_alternative<FaultRecord>(event->event))
      faults.push_back(line);
  }
  if (buffer.has_failed()) throw_unreadable(file.path(), "a read failed");
  if (::ftruncate(fd.get(), kept) != 0)
    throw EnvironmentError("cannot truncate " + file.path().string() + ": " + reason_of(errno));
  if (faults.empty()) return;
  LineFile kept_faults(file);
  for (const std::string& fault : faults) kept_faults.append(fault);
}

}  // namespace gradring::train
