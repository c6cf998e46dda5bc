// SPDX-License-Identifier: Apache-2.0
#include "train/cli/bench_launch.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "kernels/bench/provenance.h"
#include "kernels/bench/statistics.h"
#include "train/bench/find_python.h"
#include "train/bench/timed_command.h"
#include "train/cli/bench_file.h"
#include "train/cli/bench_options.h"
#include "train/launch/launcher.h"
#include "train/launch/run_folder.h"

namespace gradring::train {
namespace {

using kernels::bench::Statistics;

constexpr const char* kWorker = "/bin/true";

struct Options {
  int workers = 8;
  int rounds = 11;
  std::string json;
};

CommandLine command_line(Options& options) {
  CommandLine line{.command = "gradring bench launch"};
  const CommandOption own[] = {
      count_option("workers", "processes that are started, and end at once [8]", 1, options.workers),
      count_option("rounds", "runs of each launcher, in turns [11]", 1, options.rounds), json_option(options.json)};
  line.options.insert(line.options.end(), std::begin(own), std::end(own));
  return line;
}

std::string help_text() {
  Options unused;
  return "gradring bench launch: from the start of a launcher with trivial workers (/bin/true) to its end; beside\n"
         "torchrun, with its --monitor_interval at 0.05 s, where a Python imports torch (GRADRING_PYTHON, or along "
         "PATH)\n\n"
         "Options; in brackets the default:\n" +
         help_of(command_line(unused).options);
}

struct Contender {
  const char* name;
  std::vector<std::string> command;
  std::vector<double> seconds{};

  Statistics statistics() const { return kernels::bench::statistics_of(seconds); }
};

std::vector<Contender> contenders_of(const Options& options, const PythonSearch& search) {
  const std::string workers = std::to_string(options.workers);
  std::vector<Contender> all = {
      {"gradring launch", {own_program(), "launch", "--nproc-per-node", workers, "--", kWorker}}};
  if (search.python)
    all.push_back({"torchrun",
                   {*search.python, "-m", "torch.distributed.run", "--standalone", "--no_python", "--nproc_per_node",
                    workers, "--monitor_interval", "0.05", "-r", "1", "-t", "1", kWorker}});
  return all;
}

void measure(std::vector<Contender>& contenders, int rounds) {
  // torchrun leaves folders of logs behind; they go with this one.
  const RunFolder folder;
  ::setenv("TMPDIR", folder.path().c_str(), 1);
  for (Contender& one : contenders) bench::time_command(one.command);  // files and caches are warm
  for (int round = 0; round < rounds; ++round)
    for (Contender& one : contenders) one.seconds.push_back(bench::time_command(one.command).count());
}

nlohmann::json print(const std::vector<Contender>& contenders) {
  nlohmann::json rows = nlohmann::json::array();
  fmt::print("{:<16} {:>12} {:>12} {:>12}\n", "", "median ms", "p95 ms", "times ours");
  for (const Contender& one : contenders) {
    const double ratio = one.statistics().median / contenders.front().statistics().median;
    fmt::print("{:<16} {:>12.1f} {:>12.1f} {:>12.1f}\n", one.name, one.statistics().median * 1e3,
               one.statistics().p95 * 1e3, ratio);
    rows.push_back({{"name", one.name}, {"seconds", to_json(one.statistics())}, {"times_ours", ratio}});
  }
  return rows;
}

}  // namespace

void bench_launch(std::span<const std::string> args) {
  Options options;
  if (read_command_line(command_line(options), args).help) {
    fmt::print("{}", help_text());
    return;
  }
  const auto provenance = kernels::bench::provenance();
  const PythonSearch search = search_python_with_torch();
  fmt::print("{}\n{} workers, {} rounds; {}\n\n", kernels::bench::to_string(provenance), options.workers,
             options.rounds, search.to_string());
  std::vector<Contender> contenders = contenders_of(options, search);
  measure(contenders, options.rounds);
  write_bench_file(options.json, "launch", provenance, {{"workers", options.workers}, {"rows", print(contenders)}});
}

}  // namespace gradring::train
