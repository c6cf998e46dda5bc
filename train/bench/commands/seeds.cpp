// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/child_process.h"
#include "kernels/base/deadline.h"
#include "kernels/base/file.h"
#include "kernels/base/in_quotes.h"
#include "kernels/bench/statistics.h"
#include "train/bench/bench_run.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/options.h"
#include "train/bench/confidence.h"
#include "train/bench/machine_state.h"
#include "train/core/config/option_sources.h"
#include "train/core/setup/run_directory.h"
#include "train/launch/launcher.h"
#include "train/options/print_text.h"
#include "train/options/shell_words.h"
#include "train/options/usage_error.h"
#include "train/records/metrics/environment_error.h"
#include "train/records/metrics/line_file.h"
#include "train/records/metrics/summary.h"
#include "train/view/runs/text_table.h"

namespace gradring::train {
namespace {

struct SeedsBenchOptions {
  std::int64_t count = 3;
  std::int64_t first_seed = 0;
  std::string run_dir;
  CommonBenchOptions common;
};

CommandLine command_line(SeedsBenchOptions& options) {
  return {.command = "gradring bench seeds",
          .purpose = "accuracy of a training over several seeds: mean, deviation, confidence",
          .usage = {"gradring bench seeds --run-dir DIR [OPTIONS] train [OPTIONS of gradring train]"},
          .options = with_common_options(
              {count_option("n", "trainings, each with a seed of its own (default 3)", 1, options.count),
               count_option("first-seed", "seed of the first; the others follow (default 0)", 0, options.first_seed),
               text_option("run-dir", "DIR", "folder for the runs, DIR/seed-0, ...", options.run_dir)},
              options.common),
          .ends_at_word = true,
          .notes =
              "The trainings run one after the other. Each saves a checkpoint after each epoch. If the command is "
              "interrupted, it continues from there when it is repeated, and finished trainings are not run again. A "
              "training with other options needs another --run-dir. The 95 % confidence interval of the mean is by "
              "Student's t. Seconds are those of training, over all starts; CPU seconds those of all processes, with "
              "start-up and evaluation, of trainings that one start completed."};
}

/// Errors    UsageError unless they are a training whose seed and run directory are still open.
void check_words(const Words& words) {
  constexpr const char* kUsageLine = "gradring bench seeds --run-dir DIR train OPTIONS";
  if (words.empty() || words.front() != "train")
    throw UsageError(fmt::format("what to train is missing: {}", kUsageLine));
  for (const std::string& word : words)
    for (const char* own : {"--seed", "--run-dir", "--resume"})
      if (word == own || word.starts_with(std::string(own) + "="))
        throw UsageError(fmt::format("bench seeds gives {} to each training: leave it out behind train", own));
}

/// The options of a training, those of its environment included, as TOML.
///
/// Errors    UsageError if they are wrong; the training's message is on stderr.
std::string options_of(const Words& words) {
  ChildCommand child{.words = {own_program()}, .keep_stderr = true};
  std::ranges::copy(words, std::back_inserter(child.words));
  child.words.emplace_back("--print-config");
  ChildProcess process(child);
  std::string toml;
  std::array<char, 4096> bytes;
  while (const std::size_t count = process.read(bytes, Deadline::after(std::chrono::minutes(1))))
    toml.append(bytes.data(), count);
  if (!process.wait()) throw UsageError("bench seeds: `gradring train` rejects these options");
  return toml;
}

/// "lr = 0.1 instead of 0.01, ..."; empty if both set the same.
std::string difference(const GivenOptions& now, const GivenOptions& before) {
  std::string all;
  for (const auto& [name, given] : now) {
    const auto found = before.find(name);
    const std::string old = found == before.end() ? "" : found->second.text;
    if (given.text != old)
      all +=
          fmt::format("{}{} = {} instead of {}", all.empty() ? "" : ", ", name, in_quotes(given.text), in_quotes(old));
  }
  return all;
}

/// Keeps the options in the folder of the runs, since its results are theirs.
///
/// Errors    UsageError if the folder has runs with others: names them.
void check_same_options(const std::filesystem::path& folder, const Words& words) {
  constexpr std::size_t kMostOptionBytes = 1 << 20;
  const std::filesystem::path file = folder / "options.toml";
  const std::string toml = options_of(words);
  if (const auto before = read_regular_file(file, kMostOptionBytes)) {
    const std::string changed = difference(read_known_options(toml).value_or(GivenOptions()),
                                           read_known_options(*before).value_or(GivenOptions()));
    if (changed.empty()) return;
    throw UsageError(fmt::format("{} has trainings with other options: {}; give another --run-dir, or those options",
                                 folder.string(), changed));
  }
  std::filesystem::create_directories(folder);
  write_file_whole(file, toml);
}

/// One training of the benchmark.
class SeededTraining {
 public:
  SeededTraining(std::int64_t seed, const SeedsBenchOptions& options, const Words& words)
      : seed_(seed), run_(std::filesystem::path(options.run_dir) / fmt::format("seed-{}", seed)), words_(words) {
    words_.insert(words_.end(),
                  {"--seed", std::to_string(seed), "--run-dir", run_.string(), "--resume", "auto-or-restart"});
  }

  std::int64_t seed() const { return seed_; }
  std::string command() const { return "gradring " + shell_command(words_); }
  /// Trains, or resumes, to the end; does nothing if it has ended before.
  ///
  /// Errors    EnvironmentError if it did not finish; its message is on stderr.
  void run();
  const Summary& summary() const { return summary_; }
  /// Nothing if the training began in an earlier start.
  std::optional<double> processor_seconds() const { return processor_seconds_; }

 private:
  std::int64_t seed_;
  std::filesystem::path run_;
  Words words_;
  Summary summary_;
  std::optional<double> processor_seconds_;
};

/// Runs a program whose standard output is shown on stderr; true if it returned 0.
bool run_showing_progress(const ChildCommand& command) {
  constexpr auto kForever = std::chrono::hours(24 * 365);
  ChildProcess child(command);
  std::array<char, 4096> bytes;
  while (const std::size_t count = child.read(bytes, Deadline::after(kForever)))
    print_to_stderr(std::string(bytes.data(), count));
  return child.wait();
}

void SeededTraining::run() {
  constexpr std::size_t kMostSummaryBytes = 1 << 20;
  ChildCommand child{.words = {own_program()}, .keep_stderr = true};
  std::ranges::copy(words_, std::back_inserter(child.words));
  const bool is_new = !std::filesystem::exists(run_);
  const double before = bench::processor_seconds_of_children();
  const bool succeeded = run_showing_progress(child);
  if (is_new) processor_seconds_ = bench::processor_seconds_of_children() - before;
  const auto summary = Summary::from_json(read_regular_file(summary_of(run_), kMostSummaryBytes).value_or(""));
  if (!succeeded || !summary)
    throw EnvironmentError(
        fmt::format("the training with seed {} did not finish; repeat the command to continue from its last "
                    "checkpoint, or run it alone:\n  {}",
                    seed_, command()));
  summary_ = *summary;
}

/// An accuracy that every training has, in per cent.
struct AccuracyOfAll {
  const char* name;
  std::vector<double> percent;
};

std::vector<AccuracyOfAll> accuracies_of(const std::vector<SeededTraining>& trainings) {
  std::vector<AccuracyOfAll> all = {{"accuracy", {}}};
  for (const SeededTraining& training : trainings) all[0].percent.push_back(100 * training.summary().accuracy);
  const auto add = [&](const char* name, std::optional<double> Summary::*accuracy) {
    AccuracyOfAll of{.name = name, .percent = {}};
    for (const SeededTraining& training : trainings)
      if (const auto value = training.summary().*accuracy) of.percent.push_back(100 * *value);
    if (of.percent.size() == trainings.size()) all.push_back(std::move(of));
  };
  add("tta_accuracy", &Summary::tta_accuracy);
  add("ema_accuracy", &Summary::ema_accuracy);
  add("ema_tta_accuracy", &Summary::ema_tta_accuracy);
  return all;
}

void print(const std::vector<SeededTraining>& trainings, const std::vector<AccuracyOfAll>& accuracies) {
  std::vector<std::string> numbers;
  for (const AccuracyOfAll& of : accuracies) numbers.push_back(std::string(of.name) + " %");
  numbers.insert(numbers.end(), {"seconds", "CPU s"});
  TextTable table = TextTable::with({"seed"}, numbers);
  for (std::size_t i = 0; i < trainings.size(); ++i) {
    std::vector<std::string>& cells = table.rows.emplace_back(1, std::to_string(trainings[i].seed()));
    for (const AccuracyOfAll& of : accuracies) cells.push_back(fmt::format("{:.2f}", of.percent[i]));
    cells.push_back(fmt::format("{:.0f}", trainings[i].summary().seconds));
    const auto processor_seconds = trainings[i].processor_seconds();
    cells.push_back(processor_seconds ? fmt::format("{:.0f}", *processor_seconds) : "-");
  }
  print_shown(table.text() + "\n");
  TextTable means = TextTable::with({""}, {"mean %", "deviation", "95 % confidence"});
  for (const AccuracyOfAll& of : accuracies) {
    const bench::MeanOf mean = bench::mean_of(of.percent);
    means.rows.push_back({of.name, fmt::format("{:.3f}", mean.mean),
                          mean.count > 1 ? fmt::format("{:.3f}", mean.deviation) : std::string("-"),
                          bench::interval_text(mean)});
  }
  print_shown(means.text());
}

nlohmann::json mean_json(const bench::MeanOf& of) {
  nlohmann::json json = {{"count", of.count}, {"mean", of.mean}};
  if (of.count > 1) {
    json["deviation"] = of.deviation;
    json["confidence_95"] = {of.mean - of.half_width, of.mean + of.half_width};
  }
  return json;
}

nlohmann::json results_json(const std::vector<SeededTraining>& trainings,
                            const std::vector<AccuracyOfAll>& accuracies) {
  nlohmann::json rows = nlohmann::json::array();
  for (std::size_t i = 0; i < trainings.size(); ++i) {
    const Summary& summary = trainings[i].summary();
    nlohmann::json row = {{"seed", trainings[i].seed()}, {"command", trainings[i].command()},
                          {"loss", summary.loss},        {"steps", summary.steps},
                          {"seconds", summary.seconds},  {"parameters_sha256", summary.parameters_sha256}};
    if (const auto seconds = trainings[i].processor_seconds()) row["processor_seconds"] = *seconds;
    for (const AccuracyOfAll& of : accuracies) row[of.name] = of.percent[i] / 100;
    rows.push_back(std::move(row));
  }
  nlohmann::json percent;
  for (const AccuracyOfAll& of : accuracies) percent[of.name] = mean_json(bench::mean_of(of.percent));
  return {{"rows", rows}, {"percent", percent}};
}

void run(const SeedsBenchOptions& options, const Words& words) {
  check_words(words);
  if (options.run_dir.empty())
    throw UsageError("bench seeds keeps its runs, so that it can continue: name their folder with --run-dir");
  std::vector<SeededTraining> trainings;
  for (std::int64_t i = 0; i < options.count; ++i) trainings.emplace_back(options.first_seed + i, options, words);
  if (options.common.list) {
    std::vector<std::string> commands;
    for (const SeededTraining& training : trainings) commands.push_back(training.command());
    return print_list("trainings:", commands);
  }
  check_same_options(options.run_dir, words);
  bench::BenchRun run("seeds", options.common.files);
  for (SeededTraining& training : trainings) {
    training.run();
    print_to_stderr(fmt::format("seed {}: {:.2f} %, {:.0f} s\n", training.seed(), 100 * training.summary().accuracy,
                                training.summary().seconds));
  }
  print_text("{}\n{}\n\n", run.title(), shell_command(words));
  const std::vector<AccuracyOfAll> accuracies = accuracies_of(trainings);
  print(trainings, accuracies);
  for (const AccuracyOfAll& of : accuracies)
    run.add({.key = {{"training", shell_command(words)}, {"name", of.name}},
             .unit = "%",
             .samples = of.percent,
             .better = bench::Better::higher});
  run.finish(results_json(trainings, accuracies));
}

}  // namespace

const Command kBenchSeeds = make_command<SeedsBenchOptions>("seeds", "accuracy of a training over several seeds");

}  // namespace gradring::train
