// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "kernels/bench/statistics.h"
#include "train/bench/bench_run.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/options.h"
#include "train/bench/timed_training.h"
#include "train/core/doctor/find_python.h"
#include "train/launch/launcher.h"
#include "train/launch/workers/run_folder.h"
#include "train/options/print_text.h"

namespace gradring::train {
namespace {

using kernels::bench::Statistics;

constexpr const char* kWorker = "/bin/true";

struct LaunchBenchOptions {
  int workers = 8;
  int rounds = 11;
  CommonBenchOptions common;
};

CommandLine command_line(LaunchBenchOptions& options) {
  return {.command = "gradring bench launch",
          .purpose = "duration of `gradring launch` from start to end, compared with torchrun",
          .options = with_common_options(
              {nprocs_option("worker processes (default 8)", "workers", options.workers),
               count_option("rounds", "runs of each launcher, alternating (default 11)", 1, options.rounds)},
              options.common),
          .notes =
              "The workers are trivial (/bin/true). torchrun runs with --monitor_interval 0.05, in the Python that "
              "GRADRING_PYTHON names, or else the first python3 on PATH that imports torch."};
}

struct Contender {
  const char* name;
  std::vector<std::string> command;
  std::vector<double> seconds{};

  Statistics statistics() const { return kernels::bench::statistics_of(seconds); }
};

/// torchrun with any free port: its --standalone takes port 29400 with torch 1.13, which another torchrun may have.
std::vector<Contender> contenders_of(const LaunchBenchOptions& options, const PythonSearch& search) {
  const std::string workers = std::to_string(options.workers);
  std::vector<Contender> all = {
      {"gradring launch", {own_program(), "launch", "--nproc-per-node", workers, "--", kWorker}}};
  if (search.python)
    all.push_back({"torchrun",
                   {*search.python, "-m", "torch.distributed.run", "--rdzv_backend", "c10d", "--rdzv_endpoint",
                    "localhost:0", "--rdzv_id", "bench", "--no_python", "--nproc_per_node", workers,
                    "--monitor_interval", "0.05", "-r", "1", "-t", "1", kWorker}});
  return all;
}

void measure(std::vector<Contender>& contenders, int rounds) {
  // torchrun leaves log folders behind; they are removed with this one.
  const RunFolder folder;
  ::setenv("TMPDIR", folder.path().c_str(), 1);
  for (Contender& one : contenders) bench::time_command(one.command);  // warm up
  for (int round = 0; round < rounds; ++round)
    for (Contender& one : contenders) one.seconds.push_back(bench::time_command(one.command).count());
}

nlohmann::json print(const std::vector<Contender>& contenders) {
  nlohmann::json rows = nlohmann::json::array();
  print_text("{:<16} {:>12} {:>12} {:>8} {:>12}\n", "", "median ms", "p95 ms", "noise", "times ours");
  for (const Contender& one : contenders) {
    const double ratio = one.statistics().median / contenders.front().statistics().median;
    print_text("{:<16} {:>12.1f} {:>12.1f} {:>8} {:>12.1f}\n", one.name, one.statistics().median * 1e3,
               one.statistics().p95 * 1e3, noise_text(one.statistics()), ratio);
    rows.push_back({{"name", one.name}, {"seconds", to_json(one.statistics())}, {"times_ours", ratio}});
  }
  return rows;
}

void run(LaunchBenchOptions& options) {
  const PythonSearch search = search_python_with_torch();
  std::vector<Contender> contenders = contenders_of(options, search);
  if (options.common.list) {
    std::vector<std::string> names;
    for (const Contender& one : contenders) names.emplace_back(one.name);
    return print_list(fmt::format("launches of {} workers ({}):", options.workers, search.to_string()), names);
  }
  bench::BenchRun run("launch", options.common.files);
  print_text("{}\n{} workers, {} rounds; {}\n\n", run.title(), options.workers, options.rounds, search.to_string());
  measure(contenders, options.rounds);
  const nlohmann::json rows = print(contenders);
  for (const Contender& one : contenders)
    run.add(in_microseconds({{"workers", std::to_string(options.workers)}, {"name", one.name}}, one.statistics()));
  run.finish({{"workers", options.workers}, {"rows", rows}});
}

}  // namespace

const Command kBenchLaunch = make_command<LaunchBenchOptions>("launch", "duration of a launch, compared with torchrun");

}  // namespace gradring::train
