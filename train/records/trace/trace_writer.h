// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/records/metrics/named_file.h"
#include "train/records/trace/trace_json.h"

namespace gradring::train {

/// Compresses a text that comes in parts of any size, and passes the compressed bytes on in parts.
///
/// Errors    std::bad_alloc; what `sink` throws.
/// Cost      memory for 64 KiB, and what zlib needs, about 256 KiB.
/// Source    RFC 1952 (gzip), by zlib.
class GzipStream {
 public:
  using Sink = std::function<void(std::string_view bytes)>;

  explicit GzipStream(Sink sink);
  ~GzipStream();
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  void write(std::string_view part);
  /// Passes on the rest.
  void finish();

 private:
  struct State;

  void deflate(int flush);

  Sink sink_;
  std::unique_ptr<State> state_;
};

/// How a trace file begins, decompressed, which tells it from those of other programs.
inline constexpr std::string_view kTraceBegin = "{\"generator\":\"gradring\",";
inline bool is_trace(std::string_view head) { return head.starts_with(kTraceBegin); }

/// The member metadata of a trace file.
struct TraceMetadata {
  std::string version{};  ///< of gradring
  std::vector<std::string> command{};
  int ranks = 1;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::vector<int> missing_ranks{};  ///< whose events could not be collected
  std::string reason{};              ///< why
};

/// Writes a trace file rank by rank; compressed if the path ends in .gz. The file appears with finish().
///
/// Threads   one.
/// Errors    EnvironmentError with path and reason.
/// Cost      keeps no events in memory.
class TraceWriter {
 public:
  explicit TraceWriter(const FileAt& file);

  void add(const RankPart& part);
  void finish(const TraceMetadata& metadata);

 private:
  void write(std::string_view text);

  NamedFile file_;
  std::optional<GzipStream> gzip_;
  std::string clocks_;  // members of metadata.clocks
};

/// "a.json.gz" of rank 2 is "a.rank2.json.gz".
std::filesystem::path part_of(const std::filesystem::path& path, int rank);

}  // namespace gradring::train
