// SPDX-License-Identifier: Apache-2.0
#include "train/view/html_report/run_report.h"

#include <fmt/format.h>

#include <vector>

#include "train/view/html_report/sections.h"
#include "train/view/page/document.h"
#include "train/view/page/html.h"

namespace gradring::train {
namespace {

std::string predictions_or_reason(const ReportedRun& reported) {
  if (const auto* pictures = std::get_if<ModelPictures>(&reported.pictures)) return predictions_of(*pictures);
  return fmt::format(R"(<div class="card"><p>{}</p></div>)",
                     page::escaped(std::get<NoPictures>(reported.pictures).reason));
}

/// What a page says about each run by itself. `curves` is empty where they are plotted together.
std::string parts_of(const ReportedRun& reported, const std::string& curves) {
  const RunHistory& history = reported.run.history;
  std::string html = page::section("Timeline", timeline_of(history));
  if (!curves.empty()) html += page::section("Training", curves);
  html += page::section("Step time", step_split(history));
  html += page::section("Ranks", ranks_table(history));
  html += page::section("Memory", memory_table(history));
  if (const std::string groups = groups_table(history); !groups.empty())
    html += page::section("Parameter groups", groups);
  html += page::section("Loss scale", R"(<div class="stack">)" + loss_scale_of(reported.run) + "</div>");
  html += page::section("Predictions", predictions_or_reason(reported));
  return html + page::section("Configuration", settings_of(reported));
}

std::string heading(const Run& run, const char* tag) {
  return fmt::format(R"(<{0} class="title">{1} {2}</{0}>)", tag, page::escaped(title_of(run)), state_badge(run));
}

std::string page_of_one(const ReportedRun& reported) {
  const Run* run = &reported.run;
  const std::string no_name;
  return "<header>" + heading(*run, "h1") + overview_of(reported) + "</header>\n" +
         parts_of(reported, page::chart_grid(curves_of({&run, 1}, {&no_name, 1})));
}

std::string page_of_several(std::span<const ReportedRun> runs) {
  std::vector<const Run*> plotted;
  std::vector<std::string> names;
  for (const ReportedRun& each : runs) {
    plotted.push_back(&each.run);
    names.push_back(fmt::format("{}. {}", plotted.size(), title_of(each.run)));
  }
  std::string html = fmt::format("<header><h1>{} runs</h1></header>\n", runs.size());
  html += page::section("Configuration differences", config_differences_of(runs));
  html += page::section("Results", comparison_of(runs));
  html += page::section("Training", page::chart_grid(curves_of(plotted, names)));
  for (std::size_t i = 0; i < runs.size(); ++i)
    html += fmt::format(R"(<article id="run-{}"><header>{}{}</header>{}</article>)", i + 1, heading(runs[i].run, "h1"),
                        overview_of(runs[i]), parts_of(runs[i], ""));
  return html;
}

}  // namespace

std::string html_report(std::span<const ReportedRun> runs) {
  const std::string title = runs.size() == 1 ? title_of(runs[0].run) : fmt::format("{} runs", runs.size());
  return page::document(title + " · gradring report", runs.size() == 1 ? page_of_one(runs[0]) : page_of_several(runs));
}

}  // namespace gradring::train
