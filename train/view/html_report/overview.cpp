// SPDX-License-Identifier: Apache-2.0
#include "train/view/html_report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "train/view/page/document.h"
#include "train/view/page/html.h"
#include "train/view/page/number_text.h"

namespace gradring::train {
namespace {

using page::escaped;

std::string shown(const std::optional<double>& value, std::string (*text)(double)) {
  return value ? text(*value) : "–";
}
std::string percent(double fraction) { return page::percent_text(fraction); }

std::string card(const std::string& name, const std::string& value, const std::string& note = {}) {
  return fmt::format(R"(<div class="figure"><span>{}</span><b>{}</b><small>{}</small></div>)", escaped(name),
                     escaped(value), escaped(note));
}

std::string cards_of(const Run& run) {
  const RunFigures& figures = run.figures;
  const RunHeader& header = run.header();
  std::string html = R"(<div class="figures">)";
  const char* const split = figures.is_validated ? "validation" : "test";
  const SplitFigures& evaluated = figures.selecting();
  html += card(fmt::format("Best {} accuracy", split), shown(evaluated.best_accuracy, percent),
               evaluated.best_accuracy ? fmt::format("step {}{}", page::count_text(evaluated.best_step),
                                                     figures.best_is_not_saved() ? ", within an epoch: not saved" : "")
                                       : "not evaluated yet");
  html += card("Best saved", shown(figures.best_saved_accuracy, percent),
               figures.best_saved_accuracy
                   ? fmt::format("step {}: checkpoints/best", page::count_text(figures.best_saved_step))
                   : "no scored checkpoint");
  html += card(figures.is_validated ? "Validation loss" : "Test loss", shown(evaluated.last_loss, page::short_number),
               "last evaluation");
  if (figures.is_validated)
    html += card("Test accuracy", shown(figures.test.last_accuracy, percent), "last evaluation");
  html += card("Training loss", shown(figures.last_loss, page::short_number), "last step");
  html += card("Steps", page::count_text(figures.steps),
               figures.total_steps > 0 ? fmt::format("of {}", page::count_text(figures.total_steps)) : "");
  html += card("Throughput", shown(figures.samples_per_second, page::short_number), "samples/s");
  html += card("Time", page::seconds_text(figures.seconds), "without pauses");
  html += card("Ranks", page::count_text(header.ranks),
               fmt::format("global batch {}", page::count_text(header.global_batch)));
  html += card("Parameters", page::count_text(header.parameters), header.model);
  return html + "</div>";
}

std::string warnings_of(const Run& run) {
  if (run.history.warnings.empty()) return {};
  std::string html = R"(<div class="alert" role="alert"><b>Parts of the metrics could not be read</b><ul>)";
  for (const std::string& warning : run.history.warnings) html += fmt::format("<li>{}</li>", escaped(warning));
  return html + "</ul></div>";
}

}  // namespace

std::string title_of(const Run& run) { return run.header().name.empty() ? run.name() : run.header().name; }

std::string state_badge(const Run& run) {
  const char* style = run.state == RunState::finished  ? "good"
                      : run.state == RunState::failed  ? "bad"
                      : run.state == RunState::running ? "live"
                                                       : "warn";
  return fmt::format(R"(<span class="badge {}">{}</span>)", style, name_of(run.state));
}

std::string overview_of(const ReportedRun& reported) {
  const Run& run = reported.run;
  const RunHeader& header = run.header();
  std::string about;
  for (const std::string& part : {header.model, header.dataset, header.precision, header.device, header.host})
    if (!part.empty()) about += (about.empty() ? "" : " · ") + escaped(part);
  for (const std::string& tag : header.tags) about += fmt::format(R"( <span class="tag">{}</span>)", escaped(tag));
  std::string html = fmt::format(R"(<p class="about">{}</p>)", about);
  if (!run.reason.empty()) html += fmt::format(R"(<p class="reason">{}</p>)", escaped(run.reason));
  return html + warnings_of(run) + cards_of(run);
}

std::string comparison_of(std::span<const ReportedRun> runs) {
  page::Table table{.head = {"Run", "State"}, .numeric = {false, false}};
  const auto add_column = [&table](const char* head) {
    table.head.emplace_back(head);
    table.numeric.push_back(true);
  };
  const bool any_validated = std::ranges::any_of(runs, [](const auto& each) { return each.run.figures.is_validated; });
  // Accuracies on different samples are not compared: each set has its columns.
  if (any_validated)
    for (const char* head : {"Best validation acc.", "Saved", "Validation loss"}) add_column(head);
  for (const char* head : {"Best test acc.", "Saved", "Test loss", "Training loss", "Steps", "Samples/s", "Time"})
    add_column(head);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Run& run = runs[i].run;
    const RunFigures& figures = run.figures;
    std::vector<std::string>& row = table.rows.emplace_back();
    row = {fmt::format(R"(<i class="key c{}"></i><a href="#run-{}">{}</a>)", i % page::kColors, i + 1,
                       escaped(title_of(run))),
           state_badge(run)};
    const auto add_split = [&](const SplitFigures& evaluated, bool selects) {
      row.push_back(shown(evaluated.best_accuracy, percent));
      row.push_back(shown(selects ? figures.best_saved_accuracy : std::nullopt, percent));
      row.push_back(shown(evaluated.last_loss, page::short_number));
    };
    if (any_validated) add_split(figures.validation, figures.is_validated);
    add_split(figures.test, !figures.is_validated);
    row.push_back(shown(figures.last_loss, page::short_number));
    row.push_back(page::count_text(figures.steps));
    row.push_back(shown(figures.samples_per_second, page::short_number));
    row.push_back(page::seconds_text(figures.seconds));
  }
  return fmt::format(R"(<div class="card">{}</div>)", table.html());
}

}  // namespace gradring::train
