// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "kernels/bench/statistics.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/options.h"
#include "train/bench/restarted_training.h"
#include "train/launch/run_folder.h"

namespace gradring::train {
namespace {

struct Options {
  int ranks = 4;
  int rounds = 20;
  std::uint64_t seed = 1;
  std::string json;
};

CommandLine command_line(Options& options) {
  CommandLine line{.command = "gradring bench restart",
                   .purpose = "time from the crash of a rank (SIGKILL) to the restart and to the first step after it",
                   .options = {}};
  const Option own[] = {nprocs_option("ranks of the training (default 4)", "ranks", options.ranks),
                        count_option("rounds", "crashes (default 20)", 1, options.rounds),
                        count_option("seed", "seed for rank and time of the crashes (default 1)", 0, options.seed),
                        json_file_option(options.json)};
  line.options.insert(line.options.end(), std::begin(own), std::end(own));
  line.notes = "The training runs under `gradring launch --max-restarts`.";
  return line;
}

nlohmann::json print_row(const char* name, const std::vector<double>& seconds) {
  const auto statistics = kernels::bench::statistics_of(seconds);
  fmt::print("{:<28} {:>10.0f} {:>10.0f} {:>10.0f} {:>10.0f}\n", name, statistics.least * 1e3, statistics.median * 1e3,
             statistics.p95 * 1e3, statistics.most * 1e3);
  return {{"name", name}, {"seconds", to_json(statistics)}};
}

int run(Arguments args) {
  Options options;
  if (!words_or_help(command_line(options), args)) return kOk;
  const auto provenance = kernels::bench::provenance();
  fmt::print("{}\n{} ranks, {} crashes, seed {}\n\n", kernels::bench::to_string(provenance), options.ranks,
             options.rounds, options.seed);
  const RunFolder folder;
  std::vector<double> back, first_step;
  bench::RestartedTraining training(options.ranks, folder.path(), options.seed);
  for (int round = 0; round < options.rounds; ++round) {
    const bench::RestartTime time = training.crash();
    back.push_back(time.back);
    first_step.push_back(time.first_step);
  }
  fmt::print("{:<28} {:>10} {:>10} {:>10} {:>10}\n", "from the crash", "least ms", "median ms", "p95 ms", "most ms");
  const nlohmann::json rows = {print_row("to all ranks back", back), print_row("to the first step", first_step)};
  write_bench_file(options.json, "restart", provenance,
                   {{"ranks", options.ranks}, {"seed", options.seed}, {"rows", rows}});
  return kOk;
}

}  // namespace

const Command kBenchRestart{.name = "restart",
                            .help = "time from the crash of a rank to the first step after it",
                            .run = run,
                            .describe = describe<Options, command_line>};

}  // namespace gradring::train
