// SPDX-License-Identifier: Apache-2.0
#include "train/view/html_report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "train/view/page/chart.h"
#include "train/view/page/document.h"
#include "train/view/page/number_text.h"

namespace gradring::train {
namespace {

constexpr std::size_t kMostBins = 120;
constexpr std::size_t kParts = 6;
constexpr std::array<std::pair<const char*, int>, kParts> kNames = {
    {{"data", 5}, {"forward", 0}, {"backward", 3}, {"exposed communication", 1}, {"optimizer", 2}, {"other", 7}}};

using Split = std::array<double, kParts>;

Split split_of(const StepRecord& step) {
  Split split = {step.data_wait.count(),     step.forward.value_or(0),
                 step.backward.value_or(0),  step.exposed_communication.count(),
                 step.optimizer.value_or(0), 0};
  double known = 0;
  for (const double part : split) known += part;
  split.back() = std::max(0.0, step.duration.count() - known);
  return split;
}

/// The mean of steps [begin, end).
Split mean_of(const RunHistory& history, std::size_t begin, std::size_t end) {
  Split mean{};
  for (std::size_t i = begin; i < end; ++i) {
    const Split split = split_of(history.steps[i].record);
    for (std::size_t k = 0; k < kParts; ++k) mean[k] += split[k] / static_cast<double>(end - begin);
  }
  return mean;
}

bool has_layers(const RunHistory& history) {
  return std::ranges::any_of(history.steps, [](const auto& step) { return step.record.forward.has_value(); });
}

std::string name_of_part(std::size_t part, bool layers) {
  return part == kParts - 1 && !layers ? "compute" : kNames[part].first;
}

int color_of_part(std::size_t part, bool layers) { return part == kParts - 1 && !layers ? 0 : kNames[part].second; }

/// The parts that occur, in milliseconds, over the steps.
page::Chart areas_of(const RunHistory& history, const Split& total, bool layers) {
  page::Chart chart{
      .title = "Step time over the run", .x_label = "step", .y_unit = "ms", .x_from_zero = true, .stacked = true};
  const std::size_t steps = history.steps.size();
  const std::size_t per_bin = (steps + kMostBins - 1) / kMostBins;
  chart.caption = per_bin > 1 ? fmt::format("Milliseconds of a step of rank 0, means of {} steps.", per_bin)
                              : "Milliseconds of a step of rank 0.";
  std::vector<Split> bins;
  std::vector<double> x;
  for (std::size_t begin = 0; begin < steps; begin += per_bin) {
    const std::size_t end = std::min(begin + per_bin, steps);
    bins.push_back(mean_of(history, begin, end));
    x.push_back(static_cast<double>(history.steps[begin].record.step + history.steps[end - 1].record.step) / 2);
  }
  for (std::size_t part = 0; part < kParts; ++part) {
    if (total[part] <= 0) continue;
    page::Series series{.name = name_of_part(part, layers), .x = x, .color = color_of_part(part, layers)};
    for (const Split& bin : bins) series.y.push_back(1e3 * bin[part]);
    chart.series.push_back(std::move(series));
  }
  return chart;
}

}  // namespace

std::string step_split(const RunHistory& history) {
  if (history.steps.empty()) return "<p>The run has no steps yet.</p>";
  const bool layers = has_layers(history);
  const Split total = mean_of(history, 0, history.steps.size());
  double whole = 0;
  for (const double part : total) whole += part;
  std::vector<page::BarPart> parts;
  std::string rows;
  for (std::size_t i = 0; i < kParts; ++i) {
    if (total[i] <= 0) continue;
    const std::string name = name_of_part(i, layers);
    parts.push_back({name, total[i], color_of_part(i, layers)});
    rows += fmt::format(
        R"(<tr><td><i class="key c{}"></i>{}</td><td class="number">{}</td><td class="number">{}</td></tr>)",
        color_of_part(i, layers), name, page::seconds_text(total[i]), page::percent_text(total[i] / whole, 1));
  }
  return fmt::format(
      R"(<div class="charts"><figure><h3>Mean step: {}</h3>{}<div class="wide" tabindex="0"><table>{}</table></div><figcaption>Rank 0, mean of {} steps. {}</figcaption></figure>{}</div>)",
      page::seconds_text(whole), page::stacked_bar(parts, whole, page::seconds_text), rows,
      page::count_text(std::ssize(history.steps)),
      layers ? "Exposed communication is the wait for other ranks' gradients that backward does not hide."
             : "Forward, backward and optimizer were not measured separately: they are in compute.",
      figure(areas_of(history, total, layers)));
}

}  // namespace gradring::train
