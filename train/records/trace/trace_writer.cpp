// SPDX-License-Identifier: Apache-2.0
#include "train/records/trace/trace_writer.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

namespace gradring::train {

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
  using Json = nlohmann::ordered_json;
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

struct GzipStream::State {
  z_stream stream{};
  std::array<char, 64 * 1024> out{};
};

GzipStream::GzipStream(Sink sink) : sink_(std::move(sink)), state_(std::make_unique<State>()) {
  constexpr int kGzip = 15 + 16;  // the largest window, and a gzip header
  constexpr int kMemory = 8;      // zlib's default
  if (::deflateInit2(&state_->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
}

GzipStream::~GzipStream() { ::deflateEnd(&state_->stream); }

void GzipStream::write(std::string_view part) {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // zlib counts in 32 bits
  while (!part.empty()) {
    const std::size_t bytes = std::min(part.size(), kMost);
    state_->stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(part.data()));
    state_->stream.avail_in = static_cast<uInt>(bytes);
    deflate(Z_NO_FLUSH);
    part.remove_prefix(bytes);
  }
}

void GzipStream::finish() { deflate(Z_FINISH); }

/// Until zlib has taken all input, and with Z_FINISH has given all output: it then leaves some of `out` free.
void GzipStream::deflate(int flush) {
  z_stream& stream = state_->stream;
  do {
    stream.next_out = reinterpret_cast<Bytef*>(state_->out.data());
    stream.avail_out = static_cast<uInt>(state_->out.size());
    ::deflate(&stream, flush);
    if (const std::size_t bytes = state_->out.size() - stream.avail_out; bytes > 0)
      sink_(std::string_view(state_->out.data(), bytes));
  } while (stream.avail_out == 0);
}

}  // namespace gradring::train
