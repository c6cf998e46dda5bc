// SPDX-License-Identifier: Apache-2.0
#include "tests/train/launch/options/parsed.h"

#include "kernels/base/error.h"

namespace gradring::train {

LaunchWorld world_with(const VariableTable& variables, int gpus) {
  return {.lookup = [variables](const std::string& name) -> std::optional<std::string> {
            const auto it = variables.find(name);
            return it == variables.end() ? std::nullopt : std::optional(it->second);
          },
          .cores = 6,
          .gpus = gpus,
          .own_program = "/bin/gradring",
          .random_run_id = [] { return std::string("random"); }};
}

LaunchOptions parse(const Words& words, const VariableTable& variables, int gpus) {
  return parse_launch(words, world_with(variables, gpus)).options;
}

std::string fault_of(const Words& words, const VariableTable& variables) try {
  parse(words, variables);
  return "";
} catch (const InvalidArgument& error) {
  return error.what();
}

}  // namespace gradring::train
