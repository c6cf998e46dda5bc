// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "data/loader/random_split.h"
#include "train/app/commands/commands.h"
#include "train/app/commands/train_command.h"
#include "train/app/rank/rank.h"
#include "train/app/rank/run_banner.h"
#include "train/core/config/option_sources.h"
#include "train/core/setup/datasets.h"
#include "train/core/setup/named_output.h"
#include "train/core/setup/run_settings.h"
#include "train/core/trainer/nan_policy.h"
#include "train/core/trainer/range_test.h"
#include "train/core/trainer/training_state.h"
#include "train/options/parse_value.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"
#include "train/records/metrics/named_file.h"
#include "train/records/metrics/terminal_look.h"
#include "train/view/page/chart.h"
#include "train/view/page/generator.h"

namespace gradring::train {
namespace {

struct LrFindOptions {
  ParsedTrain train;
  RangeTestSpec test;
  std::string csv, plot;  ///< files to write; empty: none
  Replace replace = Replace::ours;
  bool json = false;
};

/// A positive number.
Option rate_option(const std::string& name, const std::string& help, double& rate) {
  const auto parse = [](std::string_view option, std::string_view text) {
    const double value = parse_float(option, text, 0);
    if (value == 0) throw bad_value(option, text, "must be above 0");
    return value;
  };
  return value_option(name, "F", help, parse, rate);
}

CommandLine command_line(LrFindOptions& options) {
  CommandLine line{
      .command = "gradring lr-find",
      .purpose = "learning rate range test: a short training with a growing learning rate, and a rate to start with",
      .usage = {"gradring lr-find [OPTIONS of gradring train]"},
      .options = config_options(options.train),
      .notes =
          "The rate grows exponentially from --min to --max over --steps (default 100). The test ends early when "
          "the smoothed loss is 4 times its lowest value. The suggested rate is that of the steepest descent of the "
          "smoothed loss over the logarithm of the rate, before the lowest loss, as in fastai. Only the files of --csv "
          "and --plot are written; schedule options, --epochs and --resume have no effect.\n\n"
          "Source: Smith, \"Cyclical learning rates for training neural networks\", 2017.\n\n"
          "Example:\n  gradring lr-find --dataset mnist --data-dir DIR --optimizer sgd --csv lr.csv"};
  const std::size_t of_training = line.options.size();
  line.options.push_back(rate_option("min", "first learning rate (default 1e-7)", options.test.least));
  line.options.push_back(rate_option("max", "last learning rate (default 10)", options.test.most));
  line.options.push_back(
      new_file_option("csv", "FILE.csv", "file for step, rate, loss and smoothed loss", options.csv));
  line.options.push_back(new_file_option(
      "plot", "FILE.svg", "file for a plot of the losses over the rate, which is logarithmic", options.plot));
  line.options.push_back(force_option(options.replace));
  line.options.push_back(json_switch(options.json));
  for (Option& option : std::span(line.options).subspan(of_training)) option.group = "Range test";
  return line;
}

constexpr std::string_view kColumns = "step,learning_rate,loss,smoothed_loss\n";
bool is_range_test(std::string_view head) { return head.starts_with(kColumns); }

std::string csv_of(const RangeTest& test) {
  std::string text(kColumns);
  for (const RangePoint& point : test.points())
    text += fmt::format("{},{:.9g},{:.9g},{:.9g}\n", point.step, point.learning_rate, point.loss, point.smoothed);
  return text;
}

std::string plot_of(const RangeTest& test, const TrainConfig& config) {
  page::Series losses{.name = "loss", .faint = true}, smoothed{.name = "smoothed loss", .color = 0};
  double highest = 0;  // of the smoothed loss: single losses may be spikes that would flatten everything else
  for (const RangePoint& point : test.points()) highest = std::max(highest, point.smoothed);
  for (const RangePoint& point : test.points()) {
    for (page::Series* series : {&losses, &smoothed}) series->x.push_back(point.learning_rate);
    losses.y.push_back(point.loss <= 1.2 * highest ? point.loss : std::numeric_limits<double>::quiet_NaN());
    smoothed.y.push_back(point.smoothed);
  }
  page::Chart chart{.title = fmt::format("Learning rate range test: {} on {}", config.model, config.dataset),
                    .x_label = "learning rate",
                    .x_scale = page::ScaleKind::logarithmic,
                    .series = {losses, smoothed}};
  if (const auto steepest = test.steepest())
    chart.marks.push_back(
        {.x = steepest->learning_rate, .label = fmt::format("steepest descent: {:.2g}", steepest->learning_rate)});
  return page::svg_file(chart);
}

/// The test of one rank. Its test set is one sample, because nothing is evaluated but at the end of an epoch.
///
/// Errors    as RankRun.
void run_test(const TrainConfig& config, const WorkerEnvironment& environment, KeptAlive& kept, RangeTest& test) {
  Rank& rank = kept.make<Rank>(config, environment);
  const Compute& compute = rank.compute();
  PosixFileSystem files;
  Start start = environment.rank == 0 ? find_start(config, std::nullopt, files) : Start();
  const Datasets sets = open_train_set(config);
  if (environment.rank == 0)
    for (const std::string& remark : sets.remarks) data::print_remark(remark);
  const OwnFiles own = own_files(config, environment, sets);
  const data::Subset one_sample(sets.train_set, {0});
  check_plan(config, compute, *sets.train_set, one_sample, environment);
  comm::ProcessGroup& group = rank.join(config, environment);
  check_ranks_agree(group, config, compute, own);
  Trainer trainer(config, {.device = *compute.device,
                           .kernels = compute.kernels,
                           .backend = *compute.backend,
                           .group = group,
                           .train_set = *sets.train_set,
                           .test_set = one_sample,
                           .metrics = test,
                           .requests = &test,
                           .others = rank.further()});
  begin_training(trainer, config, group, start);
  try {
    trainer.run();
  } catch (const Preempted&) {  // the test asked for it
  } catch (const DivergedError&) {
    if (test.points().empty()) throw;  // otherwise it is what the test was to find
  }
  check_simulation(compute);
}

/// Some of the points, about ten.
std::string table_of(const RangeTest& test) {
  constexpr std::size_t kRows = 10;
  const auto& points = test.points();
  std::string text = "Learning rate  Loss       Smoothed\n";
  const std::size_t every = std::max<std::size_t>(1, points.size() / kRows);
  for (std::size_t i = 0; i < points.size(); ++i)
    if (i % every == 0 || i + 1 == points.size())
      text += fmt::format("{:<13.2e}  {:<9.4f}  {:.4f}\n", points[i].learning_rate, points[i].loss, points[i].smoothed);
  return text;
}

/// The rates of parameter groups that go with a rate of the others: "'fc.*:lr=0.5'".
std::string rates_of_groups(const TrainConfig& training, double rate) {
  std::string text;
  for (const GroupOverride& group : training.optimizer.groups)
    if (group.learning_rate)
      text += fmt::format("{}'{}:lr={:.2g}'", text.empty() ? "" : " ", group.pattern,
                          *group.learning_rate / training.learning_rate * rate);
  return text;
}

std::vector<BannerRow> findings(const RangeTest& test, const RangeTestSpec& spec, const TrainConfig& training) {
  const std::string end = test.diverged() ? "the loss diverged" : fmt::format("all {} steps were made", spec.steps);
  std::vector<BannerRow> rows = {{"Ended", fmt::format("after step {}: {}", test.points().back().step, end)}};
  const auto steepest = test.steepest();
  if (const auto least = test.least_loss())
    rows.push_back({"Least loss", fmt::format("at {:.2e}; a tenth of that is {:.2e}", least->learning_rate,
                                              least->learning_rate / 10)});
  rows.push_back(
      {"Suggestion",
       steepest
           ? fmt::format("--lr {:.2g}, by the steepest descent of the smoothed loss", steepest->learning_rate)
           : std::string(
                 "no rate: too few steps, or the loss did not fall; raise --steps, or try other --min and --max")});
  if (const std::string groups = steepest ? rates_of_groups(training, steepest->learning_rate) : ""; !groups.empty())
    rows.push_back({"Groups", groups});
  return rows;
}

nlohmann::ordered_json to_json(const RangeTest& test, const RangeTestSpec& spec) {
  const auto rate = [](const std::optional<RangePoint>& point) {
    return point ? nlohmann::ordered_json(point->learning_rate) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json json = {{"min", spec.least},
                                 {"max", spec.most},
                                 {"steps", spec.steps},
                                 {"diverged", test.diverged()},
                                 {"rule", "steepest descent"},
                                 {"suggestion", rate(test.steepest())},
                                 {"least_loss_at", rate(test.least_loss())},
                                 {"points", nlohmann::ordered_json::array()}};
  for (const RangePoint& point : test.points())
    json["points"].push_back({{"step", point.step},
                              {"learning_rate", point.learning_rate},
                              {"loss", point.loss},
                              {"smoothed_loss", point.smoothed}});
  return json;
}

void report(const RangeTest& test, const LrFindOptions& options, const TrainConfig& training) {
  if (!options.csv.empty()) write_named_file(options.csv, csv_of(test));
  if (!options.plot.empty()) write_named_file(options.plot, plot_of(test, training));
  if (options.json) return print_json(to_json(test, options.test));
  print_text("{}\n{}", table_of(test), aligned(findings(test, options.test, training), 0, TextLook(STDOUT_FILENO)));
}

int run(Arguments args, KeptAlive& kept) {
  LrFindOptions options;
  if (!words_or_help(command_line(options), args)) return kOk;
  const ResolvedConfig resolved = resolve(options.train.options, system_variables(), options.train.config_file);
  if (resolved.config.steps > 0) options.test.steps = resolved.config.steps;
  if (options.test.steps < 2 || options.test.least >= options.test.most)
    throw UsageError(
        fmt::format("--min {} to --max {} in {} steps is no range: use a greater --max, and 2 --steps or more",
                    options.test.least, options.test.most, options.test.steps));
  check_output({.option = "--csv", .path = options.csv, .is_ours = is_range_test}, options.replace);
  check_output({.option = "--plot", .path = options.plot, .is_ours = page::is_picture}, options.replace);
  const auto environment = WorkerEnvironment::from_environment(system_variable);
  check_nprocs(resolved.config, environment);
  if (resolved.config.nprocs > 1) return spawn("lr-find", args, resolved.config);
  const TrainConfig config = range_test_config(resolved.config, options.test);
  RangeTest test(options.test);
  run_test(config, environment, kept, test);
  if (environment.rank == 0) {
    if (test.points().empty()) throw DivergedError("the loss diverged in the first step: lower --min");
    report(test, options, resolved.config);
  }
  return kOk;
}

}  // namespace

const Command kLrFindCommand{
    .name = "lr-find", .help = "learning rate range test", .run = run, .describe = describe<LrFindOptions>};

}  // namespace gradring::train
