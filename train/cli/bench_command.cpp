// SPDX-License-Identifier: Apache-2.0
#include "train/cli/bench_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <string_view>
#include <vector>

#include "kernels/runtime/nearest_name.h"
#include "train/cli/bench_allreduce.h"
#include "train/cli/bench_compare.h"
#include "train/cli/bench_kernels.h"
#include "train/cli/bench_loader.h"
#include "train/cli/bench_step.h"
#include "train/cli/exit_code.h"
#include "train/config/usage_error.h"
#include "train/launch/error_file.h"
#include "train/launch/worker_environment.h"

namespace gradring::train {
namespace {

using Arguments = std::span<const std::string>;

struct Benchmark {
  std::string_view name;
  std::string_view help;
  void (*run)(Arguments);
};

/// Each in bench_<name>.h.
constexpr Benchmark kBenchmarks[] = {
    {"kernels", "every variant of every operation: right, and how fast", bench_kernels},
    {"step", "time a training step, and show where its time goes", bench_step},
    {"compare", "the same training by PyTorch beside us, in turns", bench_compare},
    {"allreduce", "time and check an all-reduce between processes; beside PyTorch's gloo", bench_allreduce},
    {"loader", "how many samples a second become normalised batches", bench_loader},
};

void print_help(std::FILE* out) {
  fmt::print(out,
             "gradring bench: measure, and say on which machine, when and with which commit\n\n"
             "Usage: gradring bench WHAT [OPTIONS]\n\n");
  for (const Benchmark& benchmark : kBenchmarks) fmt::print(out, "  {:<10} {}\n", benchmark.name, benchmark.help);
  fmt::print(out, "\ngradring bench WHAT --help says more.\n");
}

void run(const std::string& name, Arguments rest) {
  if (name == "--help" || name == "-h" || name == "help") return print_help(stdout);
  std::vector<std::string_view> names;
  for (const Benchmark& benchmark : kBenchmarks) {
    if (benchmark.name == name) return benchmark.run(rest);
    names.push_back(benchmark.name);
  }
  throw UsageError(
      fmt::format("there is no benchmark '{}'.{} Try gradring bench --help", name, did_you_mean(name, names)));
}

}  // namespace

int bench_main(Arguments args) {
  if (args.empty()) {
    print_help(stderr);
    return kUsage;
  }
  try {
    run(args.front(), args.subspan(1));
    return kOk;
  } catch (const std::exception& error) {
    std::fflush(stdout);  // what was printed came first
    // A launcher that reads error files shows the message itself, once, at the end.
    const std::string error_file = system_variable("TORCHELASTIC_ERROR_FILE").value_or("");
    if (!write_error_file(error_file, message_of(error))) fmt::print(stderr, "gradring bench: {}\n", message_of(error));
    return exit_code_of(error);
  }
}

}  // namespace gradring::train
