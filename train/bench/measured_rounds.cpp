// SPDX-License-Identifier: Apache-2.0
#include "train/bench/measured_rounds.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/file.h"

namespace gradring::train::bench {

Contestant our_contestant(const TrainingLayout& layout, const TrainingTask& task, const std::filesystem::path& folder) {
  print_to_stderr(fmt::format("warming up: {}\n", layout.name));
  TrainingTask one_step = task;
  one_step.steps = 1;
  const double overhead = measure_training(layout, one_step, folder).processor_seconds;
  return {.layout = layout, .train = [layout, task, folder, overhead] {
            Measurement measured = measure_training(layout, task, folder);
            measured.processor_seconds = std::max(measured.processor_seconds - overhead, 0.0);
            return measured;
          }};
}

std::vector<TrainingRow> measure_rounds(const std::vector<Contestant>& contestants, int rounds) {
  std::vector<TrainingRow> rows;
  for (const Contestant& each : contestants) rows.push_back({.layout = each.layout, .framework = each.framework});
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      Measurement measured = contestants[i].train();
      print_to_stderr(fmt::format("round {} of {}: {:<28} {:8.2f} s, {:7.0f} samples/s\n", round + 1, rounds,
                                  contestants[i].layout.name, measured.seconds, measured.samples_per_second));
      rows[i].rounds.push_back(std::move(measured));
    }
  return rows;
}

}  // namespace gradring::train::bench
