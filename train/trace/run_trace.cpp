// SPDX-License-Identifier: Apache-2.0
#include "train/trace/run_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "kernels/runtime/file.h"
#include "train/report/environment_error.h"
#include "train/trace/traced_backend.h"

namespace gradring::train {
namespace {

using kernels::TraceTrack;

/// Events of a step: plans, buckets, and collectives with all their steps. More are dropped, and counted.
constexpr std::int64_t kEventsOfStep = 512;
constexpr std::int64_t kMostEvents = 1 << 19;
constexpr std::size_t kCheckpoints = 1024;

std::size_t room_for(const TraceSpec& spec) {
  const std::int64_t steps = std::min(spec.last_step - spec.first_step + 1, kMostEvents / kEventsOfStep);
  return static_cast<std::size_t>(steps * kEventsOfStep);
}

}  // namespace

RunTrace::RunTrace(TraceSpec spec, comm::ProcessGroup& group)
    : spec_(std::move(spec)),
      group_(group),
      compute_("trainer", room_for(spec_), recording_),
      communication_("communication", room_for(spec_), recording_),
      writer_("checkpoint writer", kCheckpoints, recording_) {}

RunTrace::~RunTrace() { group_.trace(nullptr); }

nn::Backend& RunTrace::backend(nn::Backend& inner) {
  backend_ = std::make_unique<TracedBackend>(inner, compute_, names_);
  return *backend_;
}

void RunTrace::before_step(std::int64_t step) {
  const bool within = !collected_ && step >= spec_.first_step && step <= spec_.last_step;
  recording_ = within;
  began_ = began_ || within;
  if (began_ && !collected_ && step > spec_.last_step) collect();
}

/// Rank by rank, so that a rank holds one other's events at most. Collecting goes on if the file cannot be written.
void RunTrace::collect() {
  collected_ = true;
  const RankPart mine = part(compare_clocks(group_, id_of_this_clock(), TraceTrack::now));
  std::optional<TraceWriter> writer;
  try_to_write([&] { writer.emplace(spec_.path); });
  for (int rank = 0; rank < group_.world_size(); ++rank) {
    const RankPart each{.events = group_.broadcast_on_host(mine.events, rank),
                        .clock = group_.broadcast_on_host(mine.clock, rank)};
    try_to_write([&] { writer->add(each); });
  }
  try_to_write([&] { writer->finish(metadata()); });
}

/// On rank 0, unless it has failed before. The training goes on after a failure.
template <class Write>
void RunTrace::try_to_write(Write write) {
  if (group_.rank() != 0 || !failure_.empty()) return;
  try {
    write();
  } catch (const EnvironmentError& error) {
    failure_ = error.what();
    print_to_stderr(fmt::format("gradring train: --trace: {}; training continues\n", failure_));
  }
}

void RunTrace::finish() {
  recording_ = false;
  if (began_ && !collected_) collect();
  if (!began_ && group_.rank() == 0)
    print_to_stderr(
        fmt::format("gradring train: --trace {}: no file was written, because the run had none of the steps "
                    "{} to {}; choose others with --trace-steps\n",
                    spec_.path.string(), spec_.first_step, spec_.last_step));
  if (!failure_.empty()) throw EnvironmentError(failure_);
}

std::filesystem::path RunTrace::abandon(const std::string& reason) noexcept try {
  recording_ = false;
  if (!began_ || std::exchange(collected_, true)) return {};
  TraceMetadata about = metadata();
  about.reason = reason;
  for (int rank = 0; rank < group_.world_size(); ++rank)
    if (rank != group_.rank()) about.missing_ranks.push_back(rank);
  const std::filesystem::path path = group_.rank() == 0 ? spec_.path : part_of(spec_.path, group_.rank());
  TraceWriter writer(path);
  writer.add(part(std::nullopt));
  writer.finish(about);
  return path;
} catch (const std::exception&) {
  return {};
}

RankPart RunTrace::part(const std::optional<RankClock>& clock) const {
  const TraceTrack* const tracks[] = {&compute_, &communication_, &writer_};
  return render_rank(group_.rank(), tracks, clock);
}

TraceMetadata RunTrace::metadata() const {
  return {.version = spec_.version,
          .command = spec_.command,
          .ranks = group_.world_size(),
          .first_step = spec_.first_step,
          .last_step = spec_.last_step};
}

}  // namespace gradring::train
