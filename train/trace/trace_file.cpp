// SPDX-License-Identifier: Apache-2.0
#include "train/trace/trace_file.h"

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

namespace gradring::train {
namespace {

using ParsedJson = nlohmann::json;

/// A file, decompressed part by part.
class FileBuffer : public std::streambuf {
 public:
  explicit FileBuffer(const std::filesystem::path& path) : source_(data::open_plain_or_gzip(path)) {}

 protected:
  int_type underflow() override {
    const std::size_t bytes = source_->read(part_);
    char* const begin = reinterpret_cast<char*>(part_.data());
    setg(begin, begin, begin + bytes);
    return bytes > 0 ? traits_type::to_int_type(*begin) : traits_type::eof();
  }

 private:
  std::unique_ptr<data::ByteSource> source_;
  std::array<std::uint8_t, 64 * 1024> part_{};
};

std::int64_t ns_of(const ParsedJson& micros) { return std::llround(micros.get<double>() * 1000); }

TraceSlice to_slice(const ParsedJson& event) {
  const ParsedJson args = event.value("args", ParsedJson::object());
  TraceSlice slice{.rank = event.at("pid").get<int>(),
                   .track = event.at("tid").get<int>(),
                   .category = event.at("cat").get<std::string>(),
                   .name = event.at("name").get<std::string>(),
                   .begin = ns_of(event.at("ts"))};
  slice.end = slice.begin + ns_of(event.at("dur"));
  if (slice.category == "step") slice.step = args.at("step").get<std::int64_t>();
  slice.collective = args.value("collective", std::int64_t{-1});
  slice.bytes = args.value("bytes", std::int64_t{0});
  if (args.contains("ready")) slice.ready = ns_of(args.at("ready"));
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

/// Parses a file; its events become slices at once and are not kept.
ParsedJson parse(const std::filesystem::path& path, std::vector<TraceSlice>& slices) {
  constexpr int kMembers = 1, kEvents = 2;  // levels
  std::string member;
  const auto take = [&](int depth, ParsedJson::parse_event_t part, const ParsedJson& value) {
    if (part == ParsedJson::parse_event_t::key && depth == kMembers) member = value.get<std::string>();
    if (part != ParsedJson::parse_event_t::object_end || depth != kEvents || member != "traceEvents") return true;
    if (value.at("ph") == "X") slices.push_back(to_slice(value));
    return false;
  };
  FileBuffer buffer(path);
  using Bytes = std::istreambuf_iterator<char>;
  return ParsedJson::parse(Bytes(&buffer), Bytes(), take);
}

void read_one(const std::filesystem::path& path, TraceFile& file, ReadClocks& clocks) try {
  const ParsedJson all = parse(path, file.slices);
  const ParsedJson& about = all.at("metadata");
  if (about.value("format", "") != "gradring trace 1")
    throw data::DataError(path, "is a trace of another program or format",
                          "use a file that gradring train --trace wrote");
  file.world_size = about.at("ranks").get<int>();
  for (const ParsedJson& clock : about.at("clocks")) {
    clocks.ranks.insert(clock.at("rank").get<int>());
    file.dropped += clock.at("dropped_events").get<std::int64_t>();
    if (clock.at("accuracy_us").is_null())
      clocks.not_compared.insert(clock.at("boot_id").get<std::string>());
    else
      file.accuracy_us = std::max(file.accuracy_us, clock.at("accuracy_us").get<double>());
  }
} catch (const ParsedJson::exception& error) {
  throw data::DataError(path, std::string("is no trace: ") + error.what(),
                        "use a file that gradring train --trace wrote");
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
