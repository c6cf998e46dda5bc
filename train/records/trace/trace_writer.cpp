// SPDX-License-Identifier: Apache-2.0
#include "train/records/trace/trace_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/base/host_name.h"

namespace gradring::train {
namespace {

constexpr int kExchanges = 32;

/// Rank 0's value. Returns when the values of all ranks have arrived here.
std::int64_t exchange(comm::ProcessGroup& group, std::int64_t mine) {
  const std::vector<std::byte> all = group.all_gather_on_host(std::as_bytes(std::span(&mine, 1)));
  std::int64_t first = 0;
  std::memcpy(&first, all.data(), sizeof first);
  return first;
}

using Json = nlohmann::ordered_json;
using kernels::TraceCategory;
using kernels::TraceEvent;
using kernels::TraceTrack;
using Output = std::back_insert_iterator<std::string>;

using Names = std::array<const char*, 4>;

/// Names of TraceEvent::numbers.
constexpr Names names_of(TraceCategory category) {
  switch (category) {
    case TraceCategory::step:
    case TraceCategory::checkpoint: return {"step"};
    case TraceCategory::bucket: return {"bucket", "bytes"};
    case TraceCategory::collective: return {"collective", "bytes"};
    case TraceCategory::transfer: return {"step", "bytes", "to", "from"};
    case TraceCategory::loader: return {"samples"};
    case TraceCategory::kernel: return {"blocks", "threads", "registers", "graph"};
    case TraceCategory::memcpy:
    case TraceCategory::memset: return {"bytes", "graph"};
    default: return {};
  }
}

/// Nanoseconds as microseconds.
struct Micros {
  std::int64_t ns;
};

std::string text(Micros time) {
  return fmt::format("{}{}.{:03}", time.ns < 0 ? "-" : "", std::abs(time.ns) / 1000, std::abs(time.ns) % 1000);
}

std::string quoted_json(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

class RankRenderer {
 public:
  RankRenderer(int rank, const RankClock& clock) : rank_(rank), clock_(clock) {
    add_name("process_name", 0, fmt::format("rank {}", rank));
    fmt::format_to(begin_event(), R"({{"ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}}}})",
                   rank, rank);
  }

  void add(int thread, const TraceTrack& track) {
    add_name("thread_name", thread, track.name());
    fmt::format_to(begin_event(),
                   R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})", rank_,
                   thread, thread);
    for (const TraceEvent& event : track.events()) {
      add_slice(thread, event);
      if (event.category == TraceCategory::bucket) add_flow(thread, event);
    }
  }

  std::string take() { return std::move(events_); }

 private:
  Output begin_event() {
    if (!events_.empty()) events_ += ",\n";
    return std::back_inserter(events_);
  }
  std::string time_of(std::int64_t ns) const { return text(Micros{ns + clock_.offset_ns}); }

  void add_name(const char* what, int thread, const std::string& name) {
    fmt::format_to(begin_event(), R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{"name":{}}}}})", rank_, thread,
                   what, quoted_json(name));
  }
  void add_slice(int thread, const TraceEvent& event) {
    const Names names = names_of(event.category);
    fmt::format_to(begin_event(), R"({{"ph":"X","pid":{},"tid":{},"cat":"{}","name":{},"ts":{},"dur":{},"args":{{)",
                   rank_, thread, name_of(event.category), quoted_json(event.name), time_of(event.begin),
                   text(Micros{event.end - event.begin}));
    const char* comma = "";
    for (std::size_t i = 0; i < names.size() && names[i]; ++i, comma = ",")
      fmt::format_to(Output(events_), R"({}"{}":{})", comma, names[i], event.numbers[i]);
    if (event.category == TraceCategory::bucket)
      fmt::format_to(Output(events_), R"(,"ready":{})", time_of(event.numbers[2]));
    events_ += "}}";
  }
  /// From the first track, on which the bucket was ready.
  void add_flow(int thread, const TraceEvent& bucket) {
    const std::int64_t id = (static_cast<std::int64_t>(rank_) << 32) + ++flows_;
    const char* const flow = R"({{"ph":"{}",{}"id":{},"pid":{},"tid":{},"cat":"bucket","name":"bucket","ts":{}}})";
    fmt::format_to(begin_event(), fmt::runtime(flow), "s", "", id, rank_, 1, time_of(bucket.numbers[2]));
    fmt::format_to(begin_event(), fmt::runtime(flow), "f", R"("bp":"e",)", id, rank_, thread, time_of(bucket.begin));
  }

  int rank_;
  RankClock clock_;
  std::string events_;
  std::int64_t flows_ = 0;
};

}  // namespace

RankPart render_rank(int rank, std::span<const TraceTrack* const> tracks, const std::optional<RankClock>& clock) {
  RankRenderer renderer(rank, clock.value_or(RankClock()));
  std::size_t dropped = 0;
  int thread = 0;
  for (const TraceTrack* track : tracks) {
    renderer.add(++thread, *track);
    dropped += track->dropped();
  }
  return {.events = renderer.take(),
          .clock =
              fmt::format(R"({{"rank":{},"host":{},"boot_id":{},"offset_us":{},"accuracy_us":{},"dropped_events":{}}})",
                          rank, quoted_json(host_name()), quoted_json(id_of_this_clock()),
                          clock ? text(Micros{clock->offset_ns}) : "null",
                          clock ? text(Micros{clock->accuracy_ns}) : "null", dropped)};
}

std::string id_of_this_clock() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id;
}

RankClock compare_clocks(comm::ProcessGroup& group, const std::string& clock_id,
                         const std::function<std::int64_t()>& now) {
  const std::string of_rank_0 = group.broadcast_on_host(clock_id, 0);
  const bool shared = group.rank() == 0 || (!clock_id.empty() && clock_id == of_rank_0);
  std::int64_t others = shared ? 0 : 1;
  group.all_reduce_on_host(std::span(&others, 1));
  if (others == 0) return {};

  std::int64_t least = std::numeric_limits<std::int64_t>::min() / 4;
  std::int64_t most = std::numeric_limits<std::int64_t>::max() / 4;
  for (int i = 0; i < kExchanges; ++i) {
    group.barrier_on_host();
    const std::int64_t sent = now();
    const std::int64_t sent_by_0 = exchange(group, sent);
    const std::int64_t arrived = now();
    const std::int64_t arrived_at_0 = exchange(group, arrived);
    least = std::max(least, sent_by_0 - arrived);
    most = std::min(most, arrived_at_0 - sent);
  }
  if (shared) return {};
  return {.offset_ns = least + (most - least) / 2, .accuracy_ns = std::max<std::int64_t>(1, (most - least + 1) / 2)};
}

TraceWriter::TraceWriter(const FileAt& file) : file_(file) {
  if (file.path().extension() == ".gz") gzip_.emplace([this](std::string_view bytes) { file_.write(bytes); });
  write(kTraceBegin);
  write("\"traceEvents\":[\n");
}

void TraceWriter::write(std::string_view text) {
  if (gzip_)
    gzip_->write(text);
  else
    file_.write(text);
}

void TraceWriter::add(const RankPart& part) {
  if (!clocks_.empty()) write(",\n");
  write(part.events);
  clocks_ += (clocks_.empty() ? "" : ",") + part.clock;
}

void TraceWriter::finish(const TraceMetadata& metadata) {
  Json about{{"format", "gradring trace 1"},
             {"version", metadata.version},
             {"command", metadata.command},
             {"ranks", metadata.ranks},
             {"steps", {metadata.first_step, metadata.last_step}}};
  about["missing_ranks"] = metadata.missing_ranks;
  if (!metadata.reason.empty()) about["reason"] = metadata.reason;
  std::string json = about.dump(-1, ' ', false, Json::error_handler_t::replace);
  json.pop_back();
  write(fmt::format("\n],\n\"displayTimeUnit\":\"ms\",\n\"metadata\":{},\"clocks\":[{}]}}}}\n", json, clocks_));
  if (gzip_) gzip_->finish();
  file_.finish();
}

std::filesystem::path part_of(const std::filesystem::path& path, int rank) {
  std::filesystem::path name = path.filename();
  std::string extensions;
  for (; name.has_extension() && (extensions.empty() || extensions == ".gz"); name = name.stem())
    extensions = name.extension().string() + extensions;
  return path.parent_path() / fmt::format("{}.rank{}{}", name.string(), rank, extensions);
}

GzipStream::GzipStream(Sink sink) : sink_(std::move(sink)) {
  constexpr int kGzip = 15 + 16;  // the largest window, and a gzip header
  constexpr int kMemory = 8;      // zlib's default
  if (::deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
}

GzipStream::~GzipStream() { ::deflateEnd(&stream_); }

void GzipStream::write(std::string_view part) {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // zlib counts in 32 bits
  while (!part.empty()) {
    const std::size_t bytes = std::min(part.size(), kMost);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(part.data()));
    stream_.avail_in = static_cast<uInt>(bytes);
    deflate(Z_NO_FLUSH);
    part.remove_prefix(bytes);
  }
}

void GzipStream::finish() { deflate(Z_FINISH); }

/// Until zlib has taken all input, and with Z_FINISH has given all output: it then leaves some of `out` free.
void GzipStream::deflate(int flush) {
  do {
    stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
    stream_.avail_out = static_cast<uInt>(out_.size());
    ::deflate(&stream_, flush);
    if (const std::size_t bytes = out_.size() - stream_.avail_out; bytes > 0)
      sink_(std::string_view(out_.data(), bytes));
  } while (stream_.avail_out == 0);
}

}  // namespace gradring::train
