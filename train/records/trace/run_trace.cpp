// SPDX-License-Identifier: Apache-2.0
#include "train/records/trace/run_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/file.h"
#include "kernels/simt/engine/kernel_name.h"
#include "nn/backend/decorators.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train {
namespace {

using kernels::TraceCategory;
using kernels::TraceScope;
using kernels::TraceTrack;

class TracedPlan final : public nn::PlanDecorator {
 public:
  TracedPlan(std::unique_ptr<nn::Plan> inner, const char* name, TraceCategory forward, TraceTrack& track)
      : PlanDecorator(std::move(inner)), name_(name), forward_(forward), track_(track) {}

  void enqueue_statistics(kernels::Stream& stream, const nn::ForwardPass& pass) override {
    const TraceScope traced(&track_, forward_, name_);
    PlanDecorator::enqueue_statistics(stream, pass);
  }
  void enqueue_sums(kernels::Stream& stream, const nn::BackwardPass& pass) override {
    const TraceScope traced(&track_, TraceCategory::backward, name_);
    PlanDecorator::enqueue_sums(stream, pass);
  }
  void enqueue_forward(kernels::Stream& stream, const nn::ForwardPass& pass) override {
    const TraceScope traced(&track_, forward_, name_);
    PlanDecorator::enqueue_forward(stream, pass);
  }
  void enqueue_backward(kernels::Stream& stream, const nn::BackwardPass& pass) override {
    const TraceScope traced(&track_, TraceCategory::backward, name_);
    PlanDecorator::enqueue_backward(stream, pass);
  }

 private:
  const char* name_;
  TraceCategory forward_;
  TraceTrack& track_;
};

/// In training the loss is the beginning of backward.
class TracedLoss final : public nn::LossPlanDecorator {
 public:
  TracedLoss(std::unique_ptr<nn::LossPlan> inner, const char* name, TraceTrack& track)
      : LossPlanDecorator(std::move(inner)), name_(name), track_(track) {}

  void enqueue(kernels::Stream& stream, const nn::LossPass& pass) override {
    const TraceScope traced(&track_, pass.dx ? TraceCategory::backward : TraceCategory::evaluation, name_);
    LossPlanDecorator::enqueue(stream, pass);
  }

 private:
  const char* name_;
  TraceTrack& track_;
};

class TracedBackend final : public nn::BackendDecorator {
 public:
  TracedBackend(nn::Backend& inner, TraceTrack& track, TraceNames& names)
      : BackendDecorator(inner), track_(track), names_(names) {}

  std::unique_ptr<nn::Plan> plan(std::span<const nn::NodeSpec> nodes) override {
    auto plan = BackendDecorator::plan(nodes);
    std::string name;
    for (const nn::NodeSpec& node : nodes.first(plan->nodes())) name += (name.empty() ? "" : ", ") + node.name;
    const bool trains = nodes.front().trains;
    return std::make_unique<TracedPlan>(std::move(plan), names_.keep(std::move(name)),
                                        trains ? TraceCategory::forward : TraceCategory::evaluation, track_);
  }

  std::unique_ptr<nn::LossPlan> plan_cross_entropy(const nn::CrossEntropySpec& spec,
                                                   const nn::NodeSpec* last) override {
    auto plan = BackendDecorator::plan_cross_entropy(spec, last);
    const std::string layer = last && plan->nodes() > 0 ? last->name + ", " : "";
    return std::make_unique<TracedLoss>(std::move(plan), names_.keep(layer + "loss"), track_);
  }

 private:
  TraceTrack& track_;
  TraceNames& names_;
};

/// Events of a step: plans, buckets, and collectives with all their steps. More are dropped, and counted.
constexpr std::int64_t kEventsOfStep = 512;
constexpr std::int64_t kMostEvents = 1 << 19;
constexpr std::size_t kCheckpoints = 1024;
constexpr std::size_t kNotes = 32;
/// A step has as many batches as passes, and the loader runs ahead.
constexpr std::int64_t kBatchesOfStep = 32;
constexpr std::size_t kBatchesOfEvaluations = 4096;

std::int64_t steps_of(const TraceSpec& spec) {
  return spec.path.empty() ? 0 : std::min(spec.last_step - spec.first_step + 1, kMostEvents / kEventsOfStep);
}

std::size_t room_for(const TraceSpec& spec) { return static_cast<std::size_t>(steps_of(spec) * kEventsOfStep); }
std::size_t batches_for(const TraceSpec& spec) { return static_cast<std::size_t>(steps_of(spec) * kBatchesOfStep); }

std::size_t or_none(std::size_t room, const TraceSpec& spec) { return spec.path.empty() ? 0 : room; }

}  // namespace

RunTrace::RunTrace(TraceSpec spec, comm::ProcessGroup& group, TracedDevice device)
    : spec_(std::move(spec)),
      group_(group),
      device_(std::move(device)),
      compute_("trainer", room_for(spec_), recording_),
      communication_("communication", room_for(spec_), recording_),
      writer_("checkpoint writer", or_none(kCheckpoints, spec_), recording_),
      loader_("loader", batches_for(spec_), recording_),
      evaluation_loader_("loader of evaluations", or_none(kBatchesOfEvaluations, spec_), recording_),
      notes_("notes", kNotes, recording_),
      enqueued_("enqueued", 0, never_) {
  for (TraceTrack* track : {&compute_, &writer_, &loader_, &evaluation_loader_, &enqueued_})
    track->show(device_.ranges.get());
}

RunTrace::~RunTrace() { group_.trace(nullptr); }

nn::Backend& RunTrace::backend(nn::Backend& inner) {
  backend_ = std::make_unique<TracedBackend>(inner, work(), names_);
  return *backend_;
}

bool RunTrace::includes(std::int64_t step) const {
  return !spec_.path.empty() && !collected_ && step >= spec_.first_step && step <= spec_.last_step;
}

bool RunTrace::changes_at(std::int64_t step) const {
  return device_.activities && !collected_ && (began_ ? step > spec_.last_step : includes(step));
}

void RunTrace::before_step(std::int64_t step) {
  const bool within = includes(step);
  if (within && !began_) {
    began_at_ = TraceTrack::now();
    start_activities();
  }
  recording_ = within;
  began_ = began_ || within;
  if (began_ && !collected_ && step > spec_.last_step) collect();
}

/// A trace without them is better than no training.
void RunTrace::start_activities() {
  if (!device_.activities) return;
  try {
    device_.activities->start();
  } catch (const DeviceError& error) {
    problems_.push_back(fmt::format("GPU activities could not be recorded: {}", error.what()));
    device_.activities.reset();
  }
}

void RunTrace::stop_activities() {
  if (!device_.activities) return;
  try {
    const kernels::DeviceActivities found = device_.activities->stop();
    for (const auto& [name, events] : found.tracks) {
      TraceTrack& track = activities_.emplace_back(name, events.size(), recording_);
      for (kernels::TraceEvent event : events) {
        const bool is_kernel = event.category == TraceCategory::kernel;
        event.name = names_.keep(is_kernel ? simt::short_name_of(event.name) : event.name);
        track.add(event);
      }
    }
    problems_.insert(problems_.end(), found.notes.begin(), found.notes.end());
  } catch (const DeviceError& error) {
    problems_.push_back(fmt::format("GPU activities could not be collected: {}", error.what()));
  }
  device_.activities.reset();
}

/// Each is a slice as long as the trace, so that it is seen in any part of it.
void RunTrace::note_problems() {
  const std::int64_t end = TraceTrack::now();
  for (const std::string& text : std::exchange(problems_, {}))
    notes_.add({.category = TraceCategory::note, .name = names_.keep(text), .begin = began_at_, .end = end});
}

/// Rank by rank, so that a rank holds one other's events at most. Collecting goes on if the file cannot be written.
void RunTrace::collect() {
  collected_ = true;
  stop_activities();
  note_problems();
  const RankPart mine = part(compare_clocks(group_, id_of_this_clock(), TraceTrack::now));
  std::optional<TraceWriter> writer;
  try_to_write([&] { writer.emplace(at(spec_.path)); });
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
  if (!began_ && group_.rank() == 0 && !spec_.path.empty())
    print_to_stderr(
        fmt::format("gradring train: --trace {}: no file was written, because the run had none of the steps "
                    "{} to {}; choose others with --trace-steps\n",
                    spec_.path.string(), spec_.first_step, spec_.last_step));
  if (!failure_.empty()) throw EnvironmentError(failure_);
}

std::filesystem::path RunTrace::abandon(const std::string& reason) noexcept try {
  recording_ = false;
  if (!began_ || std::exchange(collected_, true)) return {};
  if (device_.activities) problems_.emplace_back("GPU activities of a run that failed are not collected");
  note_problems();
  TraceMetadata about = metadata();
  about.reason = reason;
  for (int rank = 0; rank < group_.world_size(); ++rank)
    if (rank != group_.rank()) about.missing_ranks.push_back(rank);
  const std::filesystem::path path = group_.rank() == 0 ? spec_.path : part_of(spec_.path, group_.rank());
  TraceWriter writer(at(path));
  writer.add(part(std::nullopt));
  writer.finish(about);
  return path;
} catch (const std::exception&) {
  return {};
}

FileAt RunTrace::at(const std::filesystem::path& path) const {
  if (!directory_) return path;
  const FileAt found = directory_->at(std::filesystem::absolute(path).lexically_normal());
  return {found.directory(), found.name(), path};
}

RankPart RunTrace::part(const std::optional<RankClock>& clock) const {
  std::vector<const TraceTrack*> tracks = {&compute_, &communication_,     &writer_,
                                           &loader_,  &evaluation_loader_, &notes_};
  std::ranges::transform(activities_, std::back_inserter(tracks), [](const TraceTrack& track) { return &track; });
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
