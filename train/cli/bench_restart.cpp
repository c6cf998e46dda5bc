// SPDX-License-Identifier: Apache-2.0
#include "train/cli/bench_restart.h"

#include <fmt/format.h>

#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "kernels/bench/provenance.h"
#include "kernels/bench/statistics.h"
#include "train/bench/restarted_training.h"
#include "train/cli/bench_file.h"
#include "train/cli/bench_options.h"
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
  CommandLine line{.command = "gradring bench restart"};
  const CommandOption own[] = {count_option("ranks", "ranks of the training [4]", 1, options.ranks),
                               count_option("rounds", "crashes [20]", 1, options.rounds),
                               count_option("seed", "of who is killed, and when [1]", 0, options.seed),
                               json_option(options.json)};
  line.options.insert(line.options.end(), std::begin(own), std::end(own));
  return line;
}

std::string help_text() {
  Options unused;
  return "gradring bench restart: one rank of a training under `gradring launch --max-restarts` is killed (SIGKILL), "
         "again "
         "and\nagain: how long until all ranks are back at their checkpoint, and until the first step behind it is "
         "made\n\n"
         "Options; in brackets the default:\n" +
         help_of(command_line(unused).options);
}

nlohmann::json print_row(const char* name, const std::vector<double>& seconds) {
  const auto statistics = kernels::bench::statistics_of(seconds);
  fmt::print("{:<28} {:>10.0f} {:>10.0f} {:>10.0f} {:>10.0f}\n", name, statistics.least * 1e3, statistics.median * 1e3,
             statistics.p95 * 1e3, statistics.most * 1e3);
  return {{"name", name}, {"seconds", to_json(statistics)}};
}

}  // namespace

void bench_restart(std::span<const std::string> args) {
  Options options;
  if (read_command_line(command_line(options), args).help) {
    fmt::print("{}", help_text());
    return;
  }
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
}

}  // namespace gradring::train
