// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/records/metrics/run_events.h"
#include "train/records/metrics/run_events_json.h"

namespace gradring::train {

/// A record and when it was made, in seconds since 1970.
template <class Record>
struct Timed {
  double time = 0;
  Record record{};
};

/// The evaluations on one set of samples.
struct SplitSums {
  std::optional<EvalRecord> best{};  ///< the first with the highest accuracy
  std::optional<EvalRecord> last{};
};

/// Sums over the events of a run, each of which add_event updates in constant time.
struct HistorySums {
  double started = 0;          ///< time of the first header; 0: none
  double samples = 0;          ///< of all steps
  double step_seconds = 0;     ///< of all steps
  double earlier_seconds = 0;  ///< between header and last work of each start but the newest
  double last_work = 0;        ///< latest time of a step, an evaluation, a checkpoint or an end since the newest header
  SplitSums validation{}, test{};
};

/// The events of a run, as metrics.jsonl has them, each kind in the order of the file.
struct RunHistory {
  std::vector<Timed<RunHeader>> headers;  ///< one for each start
  std::vector<Timed<StepRecord>> steps;
  std::vector<Timed<RanksRecord>> ranks;
  std::vector<Timed<EvalRecord>> evals;
  std::vector<Timed<RestartRecord>> restarts;
  std::vector<Timed<CheckpointRecord>> checkpoints;
  std::vector<Timed<FaultRecord>> faults;
  std::vector<Timed<EndRecord>> ends;  ///< one for each start that was not killed
  HistorySums sums{};
  std::vector<std::string> warnings;  ///< lines that were ignored (MetricsLines::warnings)

  /// The last event is an end: the run is over, or waits to be resumed.
  bool has_ended = false;
  double last_time = 0;  ///< of the last event; 0: none
};

/// Adds the next event of the file.
void add_event(RunHistory& history, const TimedEvent& event);

/// from_line, or a function that reads some members only.
using LineReader = std::optional<TimedEvent> (*)(std::string_view line, std::string& problem);

/// Reads a metrics.jsonl, also of a run that is running or was killed: lines that are incomplete or not an event are
/// ignored with a warning, which names the line.
///
/// Errors    EnvironmentError if the file cannot be read.
RunHistory read_history(const std::filesystem::path& metrics, LineReader reader = from_line);

}  // namespace gradring::train
