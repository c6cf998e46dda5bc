// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/process_group.h"
#include "kernels/runtime/trace_track.h"
#include "nn/backend/backend.h"
#include "train/trace/trace_json.h"
#include "train/trace/trace_names.h"
#include "train/trace/trace_writer.h"

namespace gradring::train {

struct TraceSpec {
  std::filesystem::path path;
  std::int64_t first_step = 1;  ///< counted from 1
  std::int64_t last_step = 1;
  std::string version{};  ///< of gradring, for the file
  std::vector<std::string> command{};
};

/// One rank's trace of a run: tracks that are recorded from the first to the last step, and then collected by rank 0,
/// which writes the file (docs/tracing.md).
///
/// Memory    about 70 KB a step and rank, allocated at once; at most 75 MB. When the file is written, in addition the
///           text of this rank's events and of another's, about 150 bytes an event.
/// Threads   the trainer's, except for the tracks. The group must outlive it.
class RunTrace {
 public:
  RunTrace(TraceSpec spec, comm::ProcessGroup& group);
  /// The group no longer records.
  ~RunTrace();
  RunTrace(const RunTrace&) = delete;
  RunTrace& operator=(const RunTrace&) = delete;

  kernels::TraceTrack& compute() { return compute_; }              ///< the trainer's thread
  kernels::TraceTrack& communication() { return communication_; }  ///< collectives on streams
  kernels::TraceTrack& writer() { return writer_; }                ///< the thread that writes checkpoints
  TraceNames& names() { return names_; }
  /// `inner`, with each plan recorded on the compute track. Valid as long as both.
  nn::Backend& backend(nn::Backend& inner);

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
  void collect();
  template <class Write>
  void try_to_write(Write write);
  RankPart part(const std::optional<RankClock>& clock) const;
  TraceMetadata metadata() const;

  TraceSpec spec_;
  comm::ProcessGroup& group_;
  std::atomic<bool> recording_{false};
  kernels::TraceTrack compute_;
  kernels::TraceTrack communication_;
  kernels::TraceTrack writer_;
  TraceNames names_;
  std::unique_ptr<nn::Backend> backend_;
  bool began_ = false;
  bool collected_ = false;
  std::string failure_;  // of writing the file
};

}  // namespace gradring::train
