// SPDX-License-Identifier: Apache-2.0
#include "train/faults/inject_option.h"

namespace gradring::train {

Option inject_option() {
  return {.name = "inject",
          .value = "KIND:rank=R,step=N",
          .help =
              "let something go wrong before step N, for tests and teachers; several times, if you like: kill, stop, "
              "delay (ms=M), exit (code=C) or nan; rank=any and step=20..40 are drawn (seed=S); in the first attempt, "
              "or attempt=K, attempt=every",
          .read = [](TrainConfig& config, std::string_view given) { config.faults = parse_faults(given); },
          .show = [](const TrainConfig& config) { return '"' + show_faults(config.faults) + '"'; },
          .separator = kBetweenFaults};
}

}  // namespace gradring::train
