// SPDX-License-Identifier: Apache-2.0
// A model file: TOML, expressions, blocks, shapes. Errors name a line, in one line of limited length.
#include <cstdlib>
#include <string>

#include "nn/models/model.h"
#include "tests/fuzz/fuzz_target.h"

using namespace gradring;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const nn::Model model = nn::read_model({"model.toml", text}, {28, 28, 1}, 10);
    nn::parameters_of(model);
  } catch (const InvalidArgument& error) {
    const std::string message = error.what();
    if (!message.starts_with("model.toml:") || message.size() > 1100 || message.find('\n') != message.npos)
      std::abort();
  }
  return 0;
}
