// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/base/child_process.h"
#include "kernels/base/deadline.h"
#include "kernels/bench/statistics.h"
#include "train/bench/bench_run.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/options.h"
#include "train/core/setup/run_directory.h"
#include "train/launch/launcher.h"
#include "train/launch/workers/run_folder.h"
#include "train/options/print_text.h"
#include "train/records/metrics/environment_error.h"
#include "train/view/runs/text_table.h"

namespace gradring::train {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(2);
constexpr auto kPatience = std::chrono::minutes(1);
constexpr std::int64_t kStepsBetween = 25;  // more than two checkpoints
constexpr int kMostWait = 300;              // milliseconds after those steps, at most
constexpr std::streamoff kTail = 4096;      // some lines of the metrics
constexpr std::string_view kResumes = "resumes after step ";

std::string text_of(const std::filesystem::path& path, std::streamoff most) {
  std::ifstream file(path, std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
  std::string text(static_cast<std::size_t>(std::min(size, most)), '\0');
  file.seekg(size - static_cast<std::streamoff>(text.size()));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}

/// The number after the last occurrence of `words`; -1: not found.
std::int64_t number_after(const std::string& text, std::string_view words) {
  const std::size_t at = text.rfind(words);
  return at == std::string::npos ? -1 : std::atoll(text.c_str() + at + words.size());
}

ChildCommand command_of(int ranks, const std::filesystem::path& run) {
  std::istringstream fixed(
      "--max-restarts 1000000 --backoff 0 --min-progress-steps 0 train --device cpu --threads 1 --batch-size 16 "
      "--epochs 1000000 --save-every-steps 10 --keep-last 2 --progress none --resume auto --run-dir");
  ChildCommand command{.words = {own_program(), "launch", "--nproc-per-node", std::to_string(ranks)}};
  command.words.insert(command.words.end(), std::istream_iterator<std::string>(fixed), {});
  command.words.push_back(run.string());
  return command;
}

/// Seconds from the crash of a rank.
struct RestartTime {
  double back = 0;        ///< until all ranks have connected and loaded the checkpoint
  double first_step = 0;  ///< until the first step after that
};

/// A training on the built-in digits under a launcher that restarts it whenever a rank is killed. Observed through the
/// files of its run directory, every two milliseconds.
///
/// Errors    EnvironmentError if the training ends, or makes no progress for a minute.
class RestartedTraining {
 public:
  /// Starts it with its run directory in `folder`. `seed` draws the victims and times of crash().
  RestartedTraining(int ranks, const std::filesystem::path& folder, std::uint64_t seed)
      : ranks_(ranks), run_(folder / "run"), random_(seed), launcher_(command_of(ranks, run_)) {}

  /// Waits for some steps, kills a rank, and waits until the training continues.
  RestartTime crash() {
    await("some steps", [&] { return steps() >= from_ + kStepsBetween; });
    std::this_thread::sleep_for(std::chrono::milliseconds(random_() % kMostWait));
    const auto victim = static_cast<std::size_t>(random_() % static_cast<unsigned>(ranks_));
    std::vector<pid_t> before;
    for (int rank = 0; rank < ranks_; ++rank) before.push_back(process_of(rank));
    if (before.at(victim) <= 1) throw EnvironmentError("a rank's log does not name its process");

    const kernels::bench::Stopwatch since_crash;
    ::kill(before[victim], SIGKILL);
    for (int rank = 0; rank < ranks_; ++rank)
      await("all ranks to come back", [&] {
        const std::string log = log_of(rank);
        const std::size_t last = log.rfind(kResumes);
        return process_of(rank) != before[static_cast<std::size_t>(rank)] && last != std::string::npos &&
               last > log.rfind(", process ");
      });
    RestartTime time{.back = since_crash.seconds()};
    from_ = number_after(log_of(0), kResumes);
    await("the first step", [&] { return steps() > from_; });
    time.first_step = since_crash.seconds();
    return time;
  }

 private:
  template <class Condition>
  void await(const char* what, Condition condition) {
    const auto deadline = Deadline::after(kPatience);
    while (!condition()) {
      if (!launcher_.running())
        throw EnvironmentError(
            fmt::format("the training ended while the benchmark waited for {}: run it alone to see why", what));
      if (deadline.passed())
        throw EnvironmentError(
            fmt::format("the benchmark timed out waiting for {}: run the training alone to see why", what));
      std::this_thread::sleep_for(kPollInterval);
    }
  }

  std::string log_of(int rank) const { return text_of(log_file(run_, rank), kTail); }

  /// Of the last line of the metrics; -1: it is not about a step, or longer than the tail.
  std::int64_t steps() const {
    const std::string text = text_of(metrics_of(run_), kTail);
    const std::size_t end = text.rfind('\n');
    if (end == std::string::npos || end == 0) return -1;
    const std::size_t begin = text.rfind('\n', end - 1) + 1;  // npos + 1 is 0
    const auto line = nlohmann::json::parse(text.substr(begin, end - begin), nullptr, false);
    return line.is_object() ? line.value("step", std::int64_t{-1}) : -1;
  }

  pid_t process_of(int rank) const {
    return static_cast<pid_t>(number_after(log_of(rank), fmt::format("rank {} of {}, process ", rank, ranks_)));
  }

  int ranks_;
  std::filesystem::path run_;
  std::mt19937_64 random_;
  ChildProcess launcher_;
  std::int64_t from_ = 0;  // the step after which the latest attempt began
};

struct RestartBenchOptions {
  int ranks = 4;
  int rounds = 20;
  std::uint64_t seed = 1;
  CommonBenchOptions common;
};

CommandLine command_line(RestartBenchOptions& options) {
  return {.command = "gradring bench restart",
          .purpose = "time from the crash of a rank (SIGKILL) to the restart and to the first step after it",
          .options = with_common_options(
              {count_option("nprocs", "ranks of the training (default 4)", 1, options.ranks),
               count_option("rounds", "crashes (default 20)", 1, options.rounds),
               count_option("seed", "seed for rank and time of the crashes (default 1)", 0, options.seed)},
              options.common),
          .notes = "The training runs under `gradring launch --max-restarts`."};
}

constexpr const char* kBack = "to all ranks back";
constexpr const char* kFirstStep = "to the first step";

void run(RestartBenchOptions& options) {
  if (options.common.list) return print_list("durations from the crash of a rank:", {kBack, kFirstStep});
  bench::BenchRun run("restart", options.common.files);
  print_text("{}\n{} ranks, {} crashes, seed {}\n\n", run.title(), options.ranks, options.rounds, options.seed);
  std::vector<double> back, first_step;
  {
    const RunFolder folder;
    RestartedTraining training(options.ranks, folder.path(), options.seed);
    for (int round = 0; round < options.rounds; ++round) {
      const RestartTime time = training.crash();
      back.push_back(time.back);
      first_step.push_back(time.first_step);
    }
  }  // the training ends
  TextTable table = TextTable::with({"from the crash"}, {"least ms", "median ms", "p95 ms", "most ms", "noise"});
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& [name, seconds] : {std::pair(kBack, &back), std::pair(kFirstStep, &first_step)}) {
    const auto statistics = kernels::bench::statistics_of(*seconds);
    rows.push_back({{"name", name}, {"seconds", to_json(statistics)}});
    std::vector<std::string>& cells = table.rows.emplace_back(1, name);
    for (const double each : {statistics.least, statistics.median, statistics.p95, statistics.most})
      cells.push_back(fmt::format("{:.0f}", each * 1e3));
    cells.push_back(noise_text(statistics));
    run.add(in_microseconds({{"ranks", std::to_string(options.ranks)}, {"name", name}}, statistics));
  }
  print_shown(table.text());
  run.finish({{"ranks", options.ranks}, {"seed", options.seed}, {"rows", rows}});
}

}  // namespace

const Command kBenchRestart =
    make_command<RestartBenchOptions>("restart", "time from the crash of a rank to the first step after it");

}  // namespace gradring::train
