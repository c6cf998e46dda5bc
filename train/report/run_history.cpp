// SPDX-License-Identifier: Apache-2.0
#include "train/report/run_history.h"

#include "train/report/metrics_lines.h"

namespace gradring::train {
namespace {

class HistoryBuilder {
 public:
  HistoryBuilder(RunHistory& history, double time) : history_(history), time_(time) {}

  void operator()(const RunHeader& record) const { history_.headers.push_back({time_, record}); }
  void operator()(const StepRecord& record) const { history_.steps.push_back({time_, record}); }
  void operator()(const RanksRecord& record) const { history_.ranks.push_back({time_, record}); }
  void operator()(const EvalRecord& record) const { history_.evals.push_back({time_, record}); }
  void operator()(const RestartRecord& record) const { history_.restarts.push_back({time_, record}); }
  void operator()(const CheckpointRecord& record) const { history_.checkpoints.push_back({time_, record}); }
  void operator()(const FaultRecord& record) const { history_.faults.push_back({time_, record}); }
  void operator()(const EndRecord& record) const { history_.ends.push_back({time_, record}); }

 private:
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
  while (const auto line = lines.next())
    if (const std::optional<TimedEvent> event = reader(*line))
      add_event(history, *event);
    else
      lines.ignore();
  history.warnings = lines.warnings();
  return history;
}

}  // namespace gradring::train
