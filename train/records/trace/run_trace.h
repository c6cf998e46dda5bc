// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "comm/process_group.h"
#include "kernels/runtime/device_trace.h"
#include "kernels/runtime/trace_track.h"
#include "nn/backend/backend.h"
#include "train/records/trace/trace_writer.h"

namespace gradring::train {

/// Keeps names that the events of a trace point to.
///
/// Threads   one.
class TraceNames {
 public:
  /// The same text, for as long as this lives.
  const char* keep(std::string name) { return names_.insert(std::move(name)).first->c_str(); }

 private:
  std::set<std::string> names_;
};

struct TraceSpec {
  std::filesystem::path path;   ///< empty: nothing is recorded, only shown to a profiler
  std::int64_t first_step = 1;  ///< counted from 1
  std::int64_t last_step = 1;
  std::string version{};  ///< of gradring, for the file
  std::vector<std::string> command{};
};

/// What a GPU adds to a trace; a CPU nothing.
struct TracedDevice {
  /// The host enqueues the work, and does not see when it runs.
  bool runs_ahead = false;
  std::unique_ptr<kernels::TraceRanges> ranges{};      ///< for a profiler; null: none
  std::unique_ptr<kernels::DeviceTrace> activities{};  ///< null: none
};

/// One rank's trace of a run: tracks that are recorded from the first to the last step, and then collected by rank 0,
/// which writes the file (docs/tracing.md).
///
/// Memory    about 75 KB a step and rank, allocated at once; at most 80 MB; 80 bytes for each activity of a GPU. When the
///           file is written, in addition the text of this rank's events and of another's, about 150 bytes an event.
/// Threads   the trainer's, except for the tracks. The group must outlive it.
class RunTrace {
 public:
  RunTrace(TraceSpec spec, comm::ProcessGroup& group, TracedDevice device = {});
  /// The group no longer records.
  ~RunTrace();
  RunTrace(const RunTrace&) = delete;
  RunTrace& operator=(const RunTrace&) = delete;

  kernels::TraceTrack& compute() { return compute_; }  ///< the trainer's thread
  /// Layers, and collectives on streams. On a GPU both only show ranges to a profiler: the host enqueues this work.
  kernels::TraceTrack& work() { return device_.runs_ahead ? enqueued_ : compute_; }
  kernels::TraceTrack& communication() { return device_.runs_ahead ? enqueued_ : communication_; }
  kernels::TraceTrack& writer() { return writer_; }  ///< the thread that writes checkpoints
  kernels::TraceTrack& loader() { return loader_; }  ///< the thread that prepares batches
  kernels::TraceTrack& evaluation_loader() { return evaluation_loader_; }
  TraceNames& names() { return names_; }
  /// `inner`, with each call of its plans recorded on work(), by the names of their layers. Only on streams that execute
  /// in the calling thread are these the times of the work itself. Valid as long as both.
  nn::Backend& backend(nn::Backend& inner);

  /// A file below this directory, which must outlive the trace, is found in it wherever it is moved.
  void write_in(const Directory& directory) { directory_ = &directory; }
  /// Whether a GPU's activities begin or end before this step: then all work that is enqueued must be done.
  bool changes_at(std::int64_t step) const;
  /// Called before each step, counted from 1. Before the first one after the last of the trace it is collective.
  void before_step(std::int64_t step);
  /// The end of the run: writes the file, unless that is done. Collective.
  ///
  /// Errors    EnvironmentError on rank 0, if the file could not be written, now or earlier.
  void finish();
  /// The end of a run that failed, so that ranks cannot be asked any more: rank 0 writes the file with its own events,
  /// each other rank a file beside it (part_of), without comparing clocks. Never throws.
  ///
  /// Returns   the file; empty if there is nothing to write, or it failed.
  std::filesystem::path abandon(const std::string& reason) noexcept;

 private:
  bool includes(std::int64_t step) const;
  void start_activities();
  void stop_activities();
  void note_problems();
  void collect();
  template <class Write>
  void try_to_write(Write write);
  FileAt at(const std::filesystem::path& path) const;
  RankPart part(const std::optional<RankClock>& clock) const;
  TraceMetadata metadata() const;

  TraceSpec spec_;
  const Directory* directory_ = nullptr;  // null: none
  comm::ProcessGroup& group_;
  TracedDevice device_;
  std::atomic<bool> recording_{false};
  kernels::TraceTrack compute_;
  kernels::TraceTrack communication_;
  kernels::TraceTrack writer_;
  kernels::TraceTrack loader_;
  kernels::TraceTrack evaluation_loader_;
  kernels::TraceTrack notes_;
  const std::atomic<bool> never_{false};
  kernels::TraceTrack enqueued_;               // without events
  std::list<kernels::TraceTrack> activities_;  // of the GPU's streams, once they are collected
  std::int64_t began_at_ = 0;                  // ns
  std::vector<std::string> problems_;          // to be noted in the trace
  TraceNames names_;
  std::unique_ptr<nn::Backend> backend_;
  bool began_ = false;
  bool collected_ = false;
  std::string failure_;  // of writing the file
};

}  // namespace gradring::train
