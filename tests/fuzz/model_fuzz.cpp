// SPDX-License-Identifier: Apache-2.0
// A model file: TOML, expressions, blocks, shapes.
#include <string>

#include "nn/models/model.h"
#include "tests/fuzz/fuzz_target.h"

using namespace gradring;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const nn::Model model = nn::read_model({"model.toml", text}, {28, 28, 1}, 10);
    nn::parameters_of(model);
  } catch (const InvalidArgument&) {
  }
  return 0;
}
