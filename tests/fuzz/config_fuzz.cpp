// SPDX-License-Identifier: Apache-2.0
// A config file in TOML, and the values that it gives to options.
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_path.h"
#include "train/config/config_file.h"
#include "train/config/options.h"
#include "train/config/usage_error.h"

using namespace gradring::train;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const gradring::tests::MemoryPath file(data, size);
  try {
    TrainConfig config;
    for (const auto& [name, given] : read_config_file(file.path())) find_option(name)->read(config, given.text);
  } catch (const UsageError&) {
  }
  return 0;
}
