// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/run_history.h"

#include <algorithm>
#include <cmath>

#include "train/records/metrics/metrics_lines.h"

namespace gradring::train {
namespace {

void add(SplitSums& sums, const EvalRecord& eval) {
  if (std::isfinite(eval.accuracy) && (!sums.best || eval.accuracy > sums.best->accuracy)) sums.best = eval;
  sums.last = eval;
}

class HistoryBuilder {
 public:
  HistoryBuilder(RunHistory& history, double time) : history_(history), time_(time) {}

  void operator()(const RunHeader& record) const {
    HistorySums& sums = history_.sums;
    if (history_.headers.empty())
      sums.started = time_;
    else
      sums.earlier_seconds += std::max(0.0, sums.last_work - history_.headers.back().time);
    sums.last_work = time_;
    history_.headers.push_back({time_, record});
  }
  void operator()(const StepRecord& record) const {
    add_work(history_.steps, record);
    history_.sums.samples += static_cast<double>(record.samples);
    history_.sums.step_seconds += record.duration.count();
  }
  void operator()(const RanksRecord& record) const { history_.ranks.push_back({time_, record}); }
  void operator()(const EvalRecord& record) const {
    add_work(history_.evals, record);
    if (record.split == kValidationSplit) add(history_.sums.validation, record);
    if (record.split == kTestSplit) add(history_.sums.test, record);
  }
  void operator()(const RestartRecord& record) const { history_.restarts.push_back({time_, record}); }
  void operator()(const CheckpointRecord& record) const { add_work(history_.checkpoints, record); }
  void operator()(const FaultRecord& record) const { history_.faults.push_back({time_, record}); }
  void operator()(const EndRecord& record) const { add_work(history_.ends, record); }

 private:
  template <class Record>
  void add_work(std::vector<Timed<Record>>& events, const Record& record) const {
    events.push_back({time_, record});
    history_.sums.last_work = std::max(history_.sums.last_work, time_);
  }

  RunHistory& history_;
  double time_;
};

}  // namespace

void add_event(RunHistory& history, const TimedEvent& event) {
  std::visit(HistoryBuilder(history, event.time), event.event);
  history.has_ended = std::holds_alternative<EndRecord>(event.event);
  history.last_time = event.time;
}

RunHistory read_history(const std::filesystem::path& metrics, LineReader reader) {
  RunHistory history;
  MetricsLines lines(metrics);
  std::string problem;
  while (const auto line = lines.next())
    if (const std::optional<TimedEvent> event = reader(*line, problem))
      add_event(history, *event);
    else
      lines.ignore(problem);
  history.warnings = lines.warnings();
  return history;
}

}  // namespace gradring::train
