// SPDX-License-Identifier: Apache-2.0
// A config file in TOML, the settings of a checkpoint, and the values that they give to options.
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_path.h"
#include "train/core/config/option_sources.h"
#include "train/core/config/options.h"
#include "train/options/usage_error.h"

using namespace gradring::train;

namespace {

/// As resolve() does, which reports the error with the file and the line.
void read_values(const GivenOptions& options) {
  TrainConfig config;
  for (const auto& [name, given] : options) {
    try {
      find_option(name)->read(config, given.text);
    } catch (const gradring::InvalidArgument&) {
    }
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const gradring::tests::MemoryPath file(data, size);
  try {
    read_values(read_config_file(file.path()));
  } catch (const UsageError&) {
  }
  try {
    read_values(read_known_options({reinterpret_cast<const char*>(data), size}).value_or(GivenOptions()));
  } catch (const UsageError&) {
  }
  return 0;
}
