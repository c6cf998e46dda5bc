// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <ranges>
#include <utility>
#include <vector>

#include "kernels/base/child_process.h"
#include "kernels/bench/statistics.h"
#include "train/bench/bench_run.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/options.h"
#include "train/core/doctor/find_python.h"
#include "train/launch/launcher.h"
#include "train/launch/workers/run_folder.h"
#include "train/options/print_text.h"
#include "train/records/metrics/environment_error.h"
#include "train/view/runs/text_table.h"

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
              {count_option("nprocs", "worker processes (default 8)", 1, options.workers),
               count_option("rounds", "runs of each launcher, alternating (default 11)", 1, options.rounds)},
              options.common),
          .notes =
              "The workers are trivial (/bin/true). torchrun runs with --monitor_interval 0.05, in the Python that "
              "GRADRING_PYTHON names, or else the first python3 on PATH that imports torch."};
}

struct Contender {
  const char* name;
  std::vector<std::string> command;
};

/// Wall-clock seconds of a program from PATH, whose output is dropped.
double time_command(const std::vector<std::string>& words) {
  const kernels::bench::Stopwatch watch;
  const bool succeeded = ChildProcess({.words = words}).wait();
  const double seconds = watch.seconds();
  if (!succeeded) throw EnvironmentError(fmt::format("{} failed: run it alone to see why", fmt::join(words, " ")));
  return seconds;
}

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

std::vector<Statistics> measure(const std::vector<Contender>& contenders, int rounds) {
  // torchrun leaves log folders behind; they are removed with this one.
  const RunFolder folder;
  ::setenv("TMPDIR", folder.path().c_str(), 1);
  for (const Contender& one : contenders) time_command(one.command);  // warm up
  std::vector<Statistics> statistics;
  for (auto& seconds :
       kernels::bench::in_turns(contenders.size(), kernels::bench::turns(rounds),
                                [&](std::size_t i, int) { return time_command(contenders[i].command); }))
    statistics.push_back(kernels::bench::statistics_of(std::move(seconds)));
  return statistics;
}

nlohmann::json print(const std::vector<Contender>& contenders, const std::vector<Statistics>& seconds) {
  nlohmann::json rows = nlohmann::json::array();
  TextTable table = TextTable::with({""}, {"median ms", "p95 ms", "noise", "times ours"});
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const double ratio = seconds[i].median / seconds.front().median;
    table.rows.push_back({contenders[i].name, fmt::format("{:.1f}", seconds[i].median * 1e3),
                          fmt::format("{:.1f}", seconds[i].p95 * 1e3), noise_text(seconds[i]),
                          fmt::format("{:.1f}", ratio)});
    rows.push_back({{"name", contenders[i].name}, {"seconds", to_json(seconds[i])}, {"times_ours", ratio}});
  }
  print_shown(table.text());
  return rows;
}

void run(LaunchBenchOptions& options) {
  const PythonSearch search = search_python_with_torch();
  const std::vector<Contender> contenders = contenders_of(options, search);
  if (options.common.list)
    return print_list(fmt::format("launches of {} workers ({}):", options.workers, search.to_string()),
                      contenders | std::views::transform(&Contender::name));
  bench::BenchRun run("launch", options.common.files);
  print_text("{}\n{} workers, {} rounds; {}\n\n", run.title(), options.workers, options.rounds, search.to_string());
  const std::vector<Statistics> seconds = measure(contenders, options.rounds);
  const nlohmann::json rows = print(contenders, seconds);
  for (std::size_t i = 0; i < contenders.size(); ++i)
    run.add(in_microseconds({{"workers", std::to_string(options.workers)}, {"name", contenders[i].name}}, seconds[i]));
  run.finish({{"workers", options.workers}, {"rows", rows}});
}

}  // namespace

const Command kBenchLaunch = make_command<LaunchBenchOptions>("launch", "duration of a launch, compared with torchrun");

}  // namespace gradring::train
