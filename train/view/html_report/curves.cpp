// SPDX-License-Identifier: Apache-2.0
#include "train/view/html_report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string_view>
#include <utility>

#include "train/view/page/chart.h"
#include "train/view/page/number_text.h"

namespace gradring::train {
namespace {

using page::Chart;
using page::MarkKind;
using page::ScaleKind;
using page::Series;

using StepValue = std::function<double(const StepRecord&)>;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

Series series_of(const Run& run, const std::string& name, int color, const StepValue& value) {
  Series series{.name = name, .color = color};
  for (const auto& [time, step] : run.history.steps) {
    series.x.push_back(static_cast<double>(step.step));
    series.y.push_back(value(step));
  }
  return series;
}

/// Steps over which a curve is averaged, so that about a hundred means are independent.
std::size_t window_of(std::size_t steps) { return std::max<std::size_t>(1, steps / 100); }

/// Each value becomes the mean of it and the values before it within the window; values that are not finite are left
/// out.
Series averaged(Series series, std::size_t window) {
  constexpr double kLargeShare = 1e6;
  const std::vector<double> values = series.y;
  double sum = 0;
  std::size_t count = 0;
  const auto add = [&](double value, int sign) {
    if (!std::isfinite(value)) return;
    sum += sign * value;
    count += static_cast<std::size_t>(sign);
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    add(values[i], 1);
    if (i >= window) add(values[i - window], -1);
    if (i >= window && std::abs(values[i - window]) > kLargeShare * std::abs(sum)) {  // rounding has lost the others
      sum = 0;
      for (std::size_t k = i + 1 - window; k <= i; ++k) sum += std::isfinite(values[k]) ? values[k] : 0;
    }
    series.y[i] = count > 0 ? sum / static_cast<double>(count) : kMissing;
  }
  return series;
}

/// Faults and restarts by step.
std::vector<page::Mark> marks_of(const Run& run) {
  std::vector<page::Mark> marks;
  for (const FaultGroup& fault : fault_groups_of(run.history))
    marks.push_back({.x = static_cast<double>(fault.first_step), .label = fault.label(), .kind = MarkKind::fault});
  for (const auto& [time, restart] : run.history.restarts)
    marks.push_back({.x = static_cast<double>(restart.step),
                     .label = fmt::format("restart {}", restart.attempt),
                     .kind = MarkKind::restart});
  std::ranges::stable_sort(marks, {}, &page::Mark::x);
  return marks;
}

/// A chart with a curve per run: its values faint, their mean in front.
Chart step_chart(std::span<const Run* const> runs, std::span<const std::string> names, Chart chart,
                 const StepValue& value, bool averages) {
  chart.x_label = "step";
  chart.x_from_zero = true;
  std::size_t longest = 1;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::size_t window = averages ? window_of(runs[i]->history.steps.size()) : 1;
    Series series = series_of(*runs[i], names[i], static_cast<int>(i), value);
    longest = std::max(longest, window);
    if (window > 1) {
      Series raw = series;
      raw.name.clear();
      raw.faint = true;
      chart.series.insert(chart.series.begin(), std::move(raw));
      series = averaged(std::move(series), window);
    }
    chart.series.push_back(std::move(series));
  }
  if (longest > 1)
    chart.caption += runs.size() > 1 ? " Bold: mean of the last 1 % of the steps; faint: each step."
                                     : fmt::format(" Bold: mean of {} steps; faint: each step.", longest);
  if (runs.size() == 1) chart.marks = marks_of(*runs[0]);
  return chart;
}

/// By name: a curve of the evaluations on one set of samples, of the runs that have any. One run has the curve of averaged
/// weights (--ema) in addition.
Chart eval_chart(std::span<const Run* const> runs, std::span<const std::string> names, std::string_view split,
                 Chart chart, double EvalRecord::*value, std::optional<double> EvalRecord::*averaged_value) {
  chart.x_label = "step";
  chart.x_from_zero = true;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Series series{.name = names[i], .color = static_cast<int>(i), .dots = true};
    Series ema{.name = names[i] + " EMA", .color = static_cast<int>(i + 1), .dots = true, .dashed = true};
    for (const auto& [time, eval] : runs[i]->history.evals) {
      if (eval.split != split) continue;
      series.x.push_back(static_cast<double>(eval.step));
      series.y.push_back(eval.*value);
      if (!(eval.*averaged_value)) continue;
      ema.x.push_back(static_cast<double>(eval.step));
      ema.y.push_back(*(eval.*averaged_value));
    }
    if (!series.x.empty() || runs.size() == 1) chart.series.push_back(std::move(series));
    if (runs.size() == 1 && !ema.x.empty()) chart.series.push_back(std::move(ema));
  }
  if (runs.size() == 1) {
    chart.marks = marks_of(*runs[0]);
    chart.label_marks = false;
  }
  return chart;
}

/// Accuracy and loss on each set that selects the checkpoints of a run.
void add_eval_charts(std::vector<std::string>& figures, std::span<const Run* const> runs,
                     std::span<const std::string> names) {
  for (const std::string_view split : {kValidationSplit, kTestSplit}) {
    const auto selects = [split](const Run* run) { return selecting_split(run->history) == split; };
    if (std::ranges::none_of(runs, selects)) continue;
    const char* const name = split == kValidationSplit ? "Validation" : "Test";
    figures.push_back(figure(eval_chart(runs, names, split,
                                        {.title = fmt::format("{} accuracy", name),
                                         .caption = fmt::format("In per cent of the {} samples.", split),
                                         .percent = true},
                                        &EvalRecord::accuracy, &EvalRecord::ema_accuracy)));
    figures.push_back(figure(eval_chart(runs, names, split,
                                        {.title = fmt::format("{} loss", name),
                                         .caption = fmt::format("Cross-entropy, mean over the {} samples.", split)},
                                        &EvalRecord::loss, &EvalRecord::ema_loss)));
  }
}

double gradient_norm_of(const StepRecord& step) { return step.gradient_norm; }

}  // namespace

std::vector<std::string> curves_of(std::span<const Run* const> runs, std::span<const std::string> names) {
  const auto steps = [&](Chart chart, const StepValue& value, bool averages) {
    return step_chart(runs, names, std::move(chart), value, averages);
  };
  std::vector<std::string> figures;
  figures.push_back(figure(steps(
      {.title = "Training loss",
       .caption = "Cross-entropy, mean over the samples of a step; logarithmic.",
       .y_scale = ScaleKind::logarithmic},
      [](const StepRecord& step) { return step.loss; }, true)));
  add_eval_charts(figures, runs, names);
  Chart rate = steps(
      {.title = "Learning rate", .caption = "Of each applied step.", .from_zero = true},
      [](const StepRecord& step) { return step.learning_rate; }, false);
  rate.label_marks = false;
  figures.push_back(figure(rate));
  Chart norm = steps({.title = "Gradient norm",
                      .caption = "L2 norm of the mean gradient, before clipping; logarithmic.",
                      .y_scale = ScaleKind::logarithmic},
                     gradient_norm_of, true);
  norm.label_marks = false;
  figures.push_back(figure(norm));
  Chart throughput = steps(
      {.title = "Throughput", .caption = "Samples per second of all ranks.", .y_unit = "samples/s", .from_zero = true},
      [](const StepRecord& step) { return step.samples_per_second(); }, true);
  throughput.label_marks = false;
  figures.push_back(figure(throughput));
  return figures;
}

std::string loss_scale_of(const Run& run) {
  const auto& steps = run.history.steps;
  const auto skipped = std::ranges::count_if(steps, [](const auto& step) { return step.record.skipped; });
  const bool is_scaled = std::ranges::any_of(steps, [](const auto& step) { return step.record.loss_scale != 1; });
  if (skipped == 0 && !is_scaled) return "<p>The loss was not scaled, and no step was skipped.</p>";
  Chart chart{.title = "Loss scale",
              .caption = fmt::format("Factor of the loss in backward; logarithmic. {} of {} steps skipped, because a "
                                     "gradient was not finite: marked.",
                                     page::count_text(skipped), page::count_text(std::ssize(steps))),
              .x_label = "step",
              .y_scale = ScaleKind::logarithmic,
              .x_from_zero = true,
              .label_marks = false};
  chart.series.push_back(series_of(run, "", 3, [](const StepRecord& step) { return step.loss_scale; }));
  for (const auto& [time, step] : steps)
    if (step.skipped)
      chart.marks.push_back(
          {.x = static_cast<double>(step.step),
           .label = fmt::format("step {} skipped{}{}", step.step, step.non_finite.empty() ? "" : ": ", step.non_finite),
           .kind = MarkKind::fault});
  return figure(chart);
}

}  // namespace gradring::train
