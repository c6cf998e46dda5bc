// SPDX-License-Identifier: Apache-2.0
#include "train/records/trace/trace_writer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

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

}  // namespace gradring::train
