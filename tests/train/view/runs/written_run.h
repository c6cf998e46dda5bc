// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"
#include "train/core/setup/run_directory.h"
#include "train/records/metrics/run_events_json.h"

namespace gradring::tests {

/// Run directories whose events a test writes.
class WrittenRuns {
 public:
  std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }
  const std::filesystem::path& folder() const { return folder_.path(); }

  /// Creates the run directory if it is missing, and appends events. Returns its path.
  std::filesystem::path write(const std::string& name, const std::vector<train::TimedEvent>& events) const {
    std::filesystem::create_directories(path(name) / "logs");
    std::ofstream(train::first_config(path(name))) << "lr = 0.001\n";
    std::ofstream metrics(train::metrics_of(path(name)), std::ios::app);
    for (const train::TimedEvent& event : events) metrics << train::to_line(event) << '\n';
    return path(name);
  }

 private:
  TempFolder folder_;
};

/// A start at `time` of a run of 100 steps, 10 an epoch.
inline train::TimedEvent start_at(double time, train::RunHeader header = {}) {
  header.model = "convnet";
  header.total_steps = 100;
  header.steps_per_epoch = 10;
  return {.time = time, .event = header};
}

/// The training step `step` at `time`.
inline train::TimedEvent step_at(double time, std::int64_t step, double loss = 1) {
  return {.time = time,
          .event = train::StepRecord{.step = step,
                                     .epoch = (step - 1) / 10 + 1,
                                     .loss = loss,
                                     .samples = 64,
                                     .duration = std::chrono::milliseconds(500)}};
}

}  // namespace gradring::tests
