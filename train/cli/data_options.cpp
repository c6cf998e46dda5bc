// SPDX-License-Identifier: Apache-2.0
#include "train/cli/data_options.h"

#include <fmt/format.h>

#include "train/config/usage_error.h"
#include "train/launch/worker_environment.h"

namespace gradring::train {

CommandOption data_dir_option(std::string& data_dir) {
  data_dir = system_variable("GRADRING_DATA_DIR").value_or("datasets");
  return {.name = "data-dir",
          .value = "D",
          .help = "folder of the data sets; each has one of its own in it [" + data_dir + "]",
          .read = [&data_dir](std::string_view text) { data_dir = text; }};
}

const std::string& only_name(const CommandWords& words, const CommandLine& line) {
  if (words.words.size() == 1) return words.words.front();
  throw UsageError(fmt::format("name one data set, not {}: {} NAME; gradring data info lists them",
                               words.words.empty() ? "none" : std::to_string(words.words.size()), line.command));
}

std::string megabytes(std::uint64_t bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6); }

}  // namespace gradring::train
