// SPDX-License-Identifier: Apache-2.0
#include "train/records/trace/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <streambuf>
#include <tuple>

#include "data/files/byte_source.h"
#include "kernels/base/error.h"
#include "train/records/metrics/event_reader.h"

namespace gradring::train {
namespace {

using ParsedJson = nlohmann::json;

constexpr const char* kAdvice = "use a file that gradring train --trace wrote";

/// In a file of one event that is longer, or of more events, a few compressed bytes could take all memory.
constexpr std::size_t kMostBytesOfEvent = std::size_t{32} << 20;  // also of the metadata, with a clock of each rank
constexpr std::size_t kMostSlices = std::size_t{1} << 24;
/// More are copied by recursion, with a stack for each.
constexpr int kMostLevels = 64;

constexpr double kMostMicros = 1e15;  // 31 years: nanoseconds in 63 bits
constexpr std::int64_t kMostTrack = std::int64_t{1} << 31;

/// A file, decompressed part by part.
class FileBuffer : public std::streambuf {
 public:
  explicit FileBuffer(const std::filesystem::path& path) : path_(path), source_(data::open_plain_or_gzip(path)) {}

  /// Called after each event.
  void begin_event() { bytes_of_event_ = 0; }

 protected:
  int_type underflow() override {
    if (bytes_of_event_ > kMostBytesOfEvent)
      throw data::DataError(path_, fmt::format("has an event or metadata of more than {} MiB", kMostBytesOfEvent >> 20),
                            kAdvice);
    const std::size_t bytes = source_->read(part_);
    bytes_of_event_ += bytes;
    char* const begin = reinterpret_cast<char*>(part_.data());
    setg(begin, begin, begin + bytes);
    return bytes > 0 ? traits_type::to_int_type(*begin) : traits_type::eof();
  }

 private:
  std::filesystem::path path_;
  std::unique_ptr<data::ByteSource> source_;
  std::array<std::uint8_t, 64 * 1024> part_{};
  std::size_t bytes_of_event_ = 0;
};

/// Reads members whose values are checked.
///
/// Errors    InvalidArgument: "ts is 1e+300, expected ...".
class Members {
 public:
  explicit Members(const ParsedJson& json) : json_(json) {}

  std::string text(const char* name) const {
    if (const auto found = json_.find(name); found != json_.end() && found->is_string())
      return found->get<std::string>();
    fail(name, "a text");
  }
  std::int64_t count(const char* name, std::int64_t most = kMostCount) const {
    const auto found = json_.find(name);
    if (found != json_.end() && found->is_number_unsigned() &&
        found->get<std::uint64_t>() <= static_cast<std::uint64_t>(most))
      return found->get<std::int64_t>();
    fail(name, fmt::format("a whole number from 0 to {}", most));
  }
  double number(const char* name, double least, double most) const {
    const auto found = json_.find(name);
    if (found != json_.end() && found->is_number() && found->get<double>() >= least && found->get<double>() <= most)
      return found->get<double>();
    fail(name, fmt::format("a number from {:g} to {:g}", least, most));
  }
  /// Microseconds in the file.
  std::int64_t ns(const char* name, double least = -kMostMicros) const {
    return std::llround(number(name, least, kMostMicros) * 1000);
  }
  /// Null if there is none.
  const ParsedJson* find(const char* name) const {
    const auto found = json_.find(name);
    return found == json_.end() ? nullptr : &*found;
  }

 private:
  [[noreturn]] void fail(const char* name, const std::string& expected) const {
    const ParsedJson* const found = find(name);
    const std::string shown = !found ? "missing"
                              : found->is_structured()
                                  ? "a list or an object"
                                  : found->dump(-1, ' ', false, ParsedJson::error_handler_t::replace);
    throw InvalidArgument(fmt::format("{} is {}, expected {}", name, shown.substr(0, 60), expected));
  }

  const ParsedJson& json_;
};

TraceSlice to_slice(const ParsedJson& event) {
  const Members members(event);
  TraceSlice slice{.rank = static_cast<int>(members.count("pid", kMostRanks - 1)),
                   .track = static_cast<int>(members.count("tid", kMostTrack - 1)),
                   .category = members.text("cat"),
                   .name = members.text("name"),
                   .begin = members.ns("ts")};
  slice.end = slice.begin + members.ns("dur", 0);
  const ParsedJson* const found = members.find("args");
  const ParsedJson none;
  const Members args(found ? *found : none);
  if (slice.category == "step") slice.step = args.count("step");
  if (args.find("collective")) slice.collective = args.count("collective");
  if (args.find("bytes")) slice.bytes = args.count("bytes");
  if (args.find("ready")) slice.ready = args.ns("ready");
  return slice;
}

/// Of files of one run.
struct ReadClocks {
  std::set<int> ranks;
  std::set<std::string> not_compared;  // their boot ids

  /// Whether times of all ranks can be compared.
  bool are_one() const {
    return ranks.size() < 2 || not_compared.empty() || (not_compared.size() == 1 && !not_compared.contains(""));
  }
};

/// Adds the event if it is a slice.
void add_event(const ParsedJson& event, std::vector<TraceSlice>& slices) {
  if (!event.is_object() || !event.contains("ph") || event["ph"] != "X") return;
  if (slices.size() == kMostSlices)
    throw InvalidArgument(fmt::format("it is more than the {} that are read", kMostSlices));
  slices.push_back(to_slice(event));
}

/// Parses a file; its events become slices at once and are not kept, nor is what is neither event nor metadata.
ParsedJson parse(const std::filesystem::path& path, std::vector<TraceSlice>& slices) {
  constexpr int kMembers = 1, kEvents = 2;  // levels
  FileBuffer buffer(path);
  std::string member;
  std::size_t events = 0;
  const auto take = [&](int depth, ParsedJson::parse_event_t part, const ParsedJson& value) {
    using Part = ParsedJson::parse_event_t;
    if (depth > kMostLevels) throw data::DataError(path, fmt::format("has more than {} levels", kMostLevels), kAdvice);
    if (part == Part::key && depth == kMembers) {
      member = value.get<std::string>();
      return member == "traceEvents" || member == "metadata";
    }
    if (part != Part::object_end || depth != kEvents || member != "traceEvents") return true;
    try {
      ++events;
      add_event(value, slices);
    } catch (const InvalidArgument& error) {
      throw data::DataError(path, fmt::format("event {} of traceEvents is wrong: {}", events, error.what()), kAdvice);
    }
    buffer.begin_event();
    return false;
  };
  using Bytes = std::istreambuf_iterator<char>;
  return ParsedJson::parse(Bytes(&buffer), Bytes(), take);
}

void read_clock(const Members& clock, TraceFile& file, ReadClocks& clocks) {
  clocks.ranks.insert(static_cast<int>(clock.count("rank", kMostRanks - 1)));
  file.dropped = std::min(kMostCount, file.dropped + clock.count("dropped_events"));
  const ParsedJson* const accuracy = clock.find("accuracy_us");
  if (accuracy && accuracy->is_null())
    clocks.not_compared.insert(clock.text("boot_id"));
  else
    file.accuracy_us = std::max(file.accuracy_us, clock.number("accuracy_us", 0, kMostMicros));
}

void read_one(const std::filesystem::path& path, TraceFile& file, ReadClocks& clocks) try {
  const ParsedJson all = parse(path, file.slices);
  const ParsedJson about = all.is_object() && all.contains("metadata") ? all["metadata"] : ParsedJson();
  if (!about.is_object() || !about.contains("format") || about["format"] != "gradring trace 1")
    throw data::DataError(path, "is a trace of another program or format", kAdvice);
  const Members members(about);
  file.world_size = static_cast<int>(members.count("ranks", kMostRanks));
  const ParsedJson* const all_clocks = members.find("clocks");
  if (!all_clocks || !all_clocks->is_array()) throw InvalidArgument("clocks is missing, expected a list");
  for (const ParsedJson& clock : *all_clocks) read_clock(Members(clock), file, clocks);
} catch (const InvalidArgument& error) {
  throw data::DataError(path, std::string("has wrong metadata: ") + error.what(), kAdvice);
} catch (const ParsedJson::parse_error& error) {
  throw data::DataError(path, "is not valid JSON at byte " + std::to_string(error.byte), kAdvice);
} catch (const ParsedJson::exception&) {
  throw data::DataError(path, "is a trace of another program or format", kAdvice);
}

}  // namespace

TraceFile read_trace(std::span<const std::filesystem::path> paths) {
  TraceFile file;
  ReadClocks clocks;
  for (const std::filesystem::path& path : paths) read_one(path, file, clocks);
  for (const TraceSlice& slice : file.slices)
    if (slice.category == "note") file.notes.push_back("rank " + std::to_string(slice.rank) + ": " + slice.name);
  file.ranks.assign(clocks.ranks.begin(), clocks.ranks.end());
  file.has_one_time = clocks.are_one();
  std::ranges::stable_sort(file.slices, {},
                           [](const TraceSlice& slice) { return std::tuple(slice.rank, slice.begin, -slice.end); });
  return file;
}

}  // namespace gradring::train
