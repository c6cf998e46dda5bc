// SPDX-License-Identifier: Apache-2.0
// The program `gradring` of the small package, which has the command `cuda` alone.
#include <exception>
#include <string>
#include <vector>

#include "kernels/base/file.h"
#include "train/app/cuda/cuda_commands.h"
#include "train/options/exit_code.h"
#include "train/options/program.h"

namespace gradring::train {

extern const Command kProgram;

constexpr const Command* kCommands[] = {&kCudaCommand, &kHelpOf<kProgram>, &kVersionCommand, &kCompletionsOf<kProgram>};
constexpr Command kProgram{.name = "gradring",
                           .help = "CUDA programs on simulated GPUs",
                           .subcommands = kCommands,
                           .usage = "COMMAND [OPTIONS]",
                           .kind = "command",
                           .notes = "First try: gradring cuda nvcc FILE.cu -o PROGRAM && gradring cuda run PROGRAM"};

}  // namespace gradring::train

int main(int argc, char** argv) {
  using namespace gradring::train;
  reserve_standard_streams();
  try {
    const std::vector<std::string> args(argv + 1, argv + argc);
    return finish_standard_output(run_program(kProgram, args));
  } catch (const std::exception& error) {
    if (is_output_failure(error)) return finish_standard_output(gradring::kOk, &error);
    gradring::print_to_stderr(std::string("gradring: ") + message_of(error) + "\n");
    return exit_code_of(error);
  }
}
