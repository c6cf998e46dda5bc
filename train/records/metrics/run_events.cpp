// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/run_events.h"

#include "train/options/shell_words.h"

namespace gradring::train {

std::string start_command(const RunHeader& header) {
  return header.start.empty() ? shell_command(header.command) : header.start;
}

}  // namespace gradring::train
