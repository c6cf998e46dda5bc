// SPDX-License-Identifier: Apache-2.0
#include "train/view/html_report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "train/core/config/options.h"
#include "train/core/config/train_config.h"
#include "train/view/page/document.h"
#include "train/view/page/html.h"
#include "train/view/runs/run_config.h"

namespace gradring::train {
namespace {

using page::escaped;
using Rows = std::vector<std::vector<std::string>>;

std::string value_cell(const std::string& value) {
  return value.empty() ? std::string("–") : fmt::format("<code>{}</code>", escaped(value));
}

/// Lines break between words only, not at hyphens.
std::string unbroken_words(const std::string& command) {
  std::string html;
  for (std::size_t begin = 0; begin <= command.size();) {  // keeps each blank: it may be within quotes
    const std::size_t end = std::min(command.find(' ', begin), command.size());
    html += fmt::format("{}<span>{}</span>", begin == 0 ? "" : " ", escaped(command.substr(begin, end - begin)));
    begin = end + 1;
  }
  return html;
}

std::string configuration_of(const Run& run) {
  Rows changed, unchanged;
  std::map<std::string, std::string> usual;
  for (const TrainOption& option : train_options()) usual[option.name] = unquoted(option.show(TrainConfig()));
  for (const auto& [name, value] : config_of(run)) {
    if (name == "model-text") continue;  // as long as a file: model.toml of the run
    const auto found = usual.find(name);
    const bool is_default = found != usual.end() && found->second == value;
    std::vector<std::string> row = {fmt::format("<code>--{}</code>", escaped(name)), value_cell(value)};
    if (!is_default) row.push_back(found == usual.end() ? "–" : value_cell(found->second));
    (is_default ? unchanged : changed).push_back(std::move(row));
  }
  if (changed.empty() && unchanged.empty()) return "<p>The options of the run are not known.</p>";
  const page::Table first{.head = {"Option", "Value", "Default"},
                          .rows = changed,
                          .caption = "auto and 0 are shown as what they resolved to."};
  const page::Table second{.head = {"Option", "Value"}, .rows = unchanged};
  return first.html() + fmt::format("<details><summary>{} options at their defaults</summary>{}</details>",
                                    unchanged.size(), second.html());
}

std::string environment_of(const Run& run) {
  const RunHeader& header = run.header();
  Rows rows;
  const auto add = [&rows](const char* name, const std::string& value) {
    if (!value.empty()) rows.push_back({name, escaped(value)});
  };
  add("Run directory", run.path.string());
  add("gradring", header.version.empty() ? "" : fmt::format("{} (commit {})", header.version, header.commit));
  add("Host", header.host);
  add("Machine", header.machine);
  add("Device", header.device);
  add("Backend", header.backend);
  add("Precision", header.precision);
  return page::Table{.head = {"Environment", ""}, .rows = rows}.html();
}

}  // namespace

std::string settings_of(const ReportedRun& reported) {
  const std::string command =
      reported.command.empty()
          ? "<p>The command is not known: metrics.jsonl has no header.</p>"
          : fmt::format(
                R"(<pre class="command">{}</pre><p class="note below">The command as it was given; a run directory that it names must be new.</p>)",
                unbroken_words(reported.command));
  return fmt::format(R"(<div class="card"><h3>Command that repeats the run</h3>{}</div>
<div class="charts settings"><div class="card">{}</div><div class="card">{}</div></div>)",
                     command, configuration_of(reported.run), environment_of(reported.run));
}

std::string config_differences_of(std::span<const ReportedRun> reported) {
  std::vector<Run> runs;
  page::Table table{.head = {"Setting"}};
  for (std::size_t i = 0; i < reported.size(); ++i) {
    runs.push_back(reported[i].run);
    table.head.push_back(
        fmt::format(R"(<i class="key c{}"></i>{}. {})", i % page::kColors, i + 1, escaped(title_of(reported[i].run))));
  }
  for (const ConfigDifference& difference : config_differences(runs)) {
    std::vector<std::string> row = {fmt::format("<code>{}</code>", escaped(difference.name))};
    for (const std::string& value : difference.values) row.push_back(value_cell(value));
    table.rows.push_back(std::move(row));
  }
  if (table.rows.empty()) return R"(<div class="card"><p>The runs have the same configuration.</p></div>)";
  return fmt::format(R"(<div class="card">{}</div>)", table.html());
}

}  // namespace gradring::train
