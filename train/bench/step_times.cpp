// SPDX-License-Identifier: Apache-2.0
#include "train/bench/step_times.h"

#include <algorithm>
#include <utility>

namespace gradring::train::bench {

StepTimes::Row& StepTimes::row(std::string_view part) {
  const auto found = std::ranges::find(rows_, part, &Row::name);
  if (found != rows_.end()) return *found;
  // A part that was not there in the steps before took no time in them.
  return rows_.emplace_back(Row{.name = std::string(part), .running = 0, .steps = std::vector<double>(whole_.size())});
}

void StepTimes::add(std::string_view part, Duration duration) { row(part).running += duration.count(); }

void StepTimes::end_step(Duration whole) {
  whole_.push_back(whole.count());
  for (Row& row : rows_) row.steps.push_back(std::exchange(row.running, 0));
}

void StepTimes::clear() {
  rows_.clear();
  whole_.clear();
}

StepTimes::Table StepTimes::table() const {
  Table table{.step = kernels::bench::statistics_of(whole_), .parts = {}};
  std::vector<double> rest = whole_;
  for (const Row& row : rows_) {
    for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= row.steps[i];
    table.parts.push_back({row.name, kernels::bench::statistics_of(row.steps)});
  }
  table.parts.push_back({"the rest", kernels::bench::statistics_of(rest)});
  return table;
}

}  // namespace gradring::train::bench
