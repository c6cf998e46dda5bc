// SPDX-License-Identifier: Apache-2.0
#include "train/cli/bench_command.h"

#include <fmt/format.h>

#include "kernels/runtime/write_all.h"
#include "train/cli/bench_allreduce.h"
#include "train/cli/bench_compare.h"
#include "train/cli/bench_kernels.h"
#include "train/cli/bench_launch.h"
#include "train/cli/bench_layouts.h"
#include "train/cli/bench_loader.h"
#include "train/cli/bench_restart.h"
#include "train/cli/bench_step.h"
#include "train/cli/exit_code.h"
#include "train/cli/standard_output.h"
#include "train/cli/subcommands.h"
#include "train/launch/error_file.h"
#include "train/launch/worker_environment.h"

namespace gradring::train {
namespace {

/// Each in bench_<name>.h.
constexpr Subcommand kBenchmarks[] = {
    {"kernels", "every variant of every operation: right, and how fast", bench_kernels},
    {"step", "time a training step, and show where its time goes", bench_step},
    {"compare", "the same training by PyTorch beside us, in turns", bench_compare},
    {"allreduce", "time and check an all-reduce between processes; beside PyTorch's gloo", bench_allreduce},
    {"launch", "what the launcher costs, beside torchrun", bench_launch},
    {"layouts", "one training by every layout of its steps: the same, or not", bench_layouts},
    {"restart", "from the crash of a rank to the first step after the restart", bench_restart},
    {"loader", "how many samples a second become normalised batches", bench_loader},
};

constexpr CommandGroup kBench{.command = "gradring bench",
                              .purpose = "measure, and say on which machine, when and with which commit",
                              .kind = "benchmark",
                              .usage = "WHAT [OPTIONS]",
                              .subcommands = kBenchmarks};

}  // namespace

int bench_main(std::span<const std::string> args) {
  try {
    return run_subcommand(kBench, args);
  } catch (const std::exception& error) {
    if (is_output_failure(error)) throw;
    const int code = finish_standard_output(exit_code_of(error));  // what was printed came first
    // A launcher that reads error files shows the message itself, once, at the end.
    const std::string error_file = system_variable("TORCHELASTIC_ERROR_FILE").value_or("");
    const std::string message = message_of(error);
    if (!write_error_file(error_file, message)) print_to_stderr(fmt::format("gradring bench: {}\n", message));
    return code;
  }
}

}  // namespace gradring::train
