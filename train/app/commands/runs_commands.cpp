// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/file.h"
#include "train/app/commands/commands.h"
#include "train/core/setup/named_output.h"
#include "train/core/setup/run_directory.h"
#include "train/options/exit_code.h"
#include "train/options/parse_value.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"
#include "train/records/metrics/byte_text.h"
#include "train/records/metrics/environment_error.h"
#include "train/records/metrics/named_file.h"
#include "train/records/metrics/terminal_look.h"
#include "train/view/html_report/run_report.h"
#include "train/view/page/generator.h"
#include "train/view/runs/run.h"
#include "train/view/runs/run_files.h"
#include "train/view/runs/run_list.h"
#include "train/view/runs/text_table.h"

namespace gradring::train {
namespace {

constexpr std::size_t kColumnsWithoutTerminal = 80;

std::optional<std::size_t> columns_of_output() {
  const auto size = terminal_size(STDOUT_FILENO);
  return size ? std::optional(size->columns) : std::nullopt;
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) print_to_stderr(fmt::format("gradring runs: {}\n", warning));
}

std::vector<std::string> parse_tags(std::string_view, std::string_view text) {
  return comma_separated_words(std::string(text));
}

std::vector<RunState> parse_states(std::string_view option, std::string_view text) {
  std::vector<RunState> states;
  for (const std::string& name : comma_separated_words(std::string(text))) {
    const auto* const named = std::ranges::find(kRunStates, name);
    if (named == kRunStates.end()) throw bad_value(option, name, "must be running, finished, stopped or failed");
    states.push_back(static_cast<RunState>(named - kRunStates.begin()));
  }
  return states;
}

struct ListRunsOptions {
  ListQuery query;
  bool json = false;
};

CommandLine command_line(ListRunsOptions& options) {
  return {
      .command = "gradring runs ls",
      .purpose = "table of runs",
      .usage = {"gradring runs ls [DIR...]"},
      .options = {choice_option("sort", kSortKeys, "order of the rows (default started, the newest first)",
                                options.query.sort),
                  switch_option("reverse,r", "reverse order", options.query.reverse),
                  value_option("state", "STATE[,...]", "only runs in these states: running, finished, stopped, failed",
                               parse_states, options.query.states),
                  value_option("tag", "TAG[,...]", "only runs that have all of these tags (gradring train --tags)",
                               parse_tags, options.query.tags),
                  count_option("limit", "maximum number of rows (default all)", 1, options.query.limit),
                  json_switch(options.json)},
      .takes_words = true,
      .notes =
          "DIR is a folder of run directories (default runs) or a run directory. States: running; finished; "
          "stopped by a signal, after a checkpoint; failed: diverged, failed or killed. best and last: accuracy of "
          "evaluations; loss and curve: of training steps. On a terminal, long names are shortened to its "
          "width."};
}

void run(const ListRunsOptions& options, const Words& words) {
  RunList list = list_runs(words.empty() ? Words{"runs"} : words);
  print_warnings(list.warnings);
  const auto runs = selected(std::move(list.runs), options.query);
  if (options.json) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const ListedRun& each : runs) json.push_back(to_json(each));
    print_json(json);
  } else if (runs.empty()) {
    print_text("no runs\n");
  } else {
    print_shown(table_of(runs, columns_of_output(), glyphs_of_locale()));
  }
  if (!list.problems.empty()) throw EnvironmentError(fmt::format("{}", fmt::join(list.problems, "\n")));
}

struct ShowRunOptions {
  bool json = false;
};

CommandLine command_line(ShowRunOptions& options) {
  return {.command = "gradring runs show",
          .purpose = "one run in full: what it trains, its state, results, ranks, evaluations, events",
          .usage = {"gradring runs show RUN"},
          .options = {json_switch(options.json)},
          .takes_words = true,
          .notes = "RUN is a run directory, or the name of one in runs. The run may be in progress."};
}

void run(const ShowRunOptions& options, const Words& words) {
  const Run shown = open_run(only_word(words, "gradring runs show RUN"));
  print_warnings(shown.history.warnings);
  if (options.json)
    print_json(full_json(shown));
  else
    print_shown(description_of(shown, columns_of_output().value_or(kColumnsWithoutTerminal), glyphs_of_locale()));
}

struct CompareRunsOptions {
  std::string html;
  Replace replace = Replace::ours;
  bool json = false;
};

CommandLine command_line(CompareRunsOptions& options) {
  return {.command = "gradring runs compare",
          .purpose = "runs side by side: the settings in which they differ, then their results",
          .usage = {"gradring runs compare RUN RUN... [--html FILE]"},
          .options = {text_option("html", "FILE",
                                  "HTML page with the curves of the runs in one plot, as gradring report writes it, "
                                  "without an evaluation of their models",
                                  options.html),
                      force_option(options.replace), json_switch(options.json)},
          .takes_words = true,
          .notes = "RUN is a run directory, or the name of one in runs. * marks the best value of a row."};
}

std::string html_comparison(std::vector<Run> runs) {
  std::vector<ReportedRun> reported;
  for (Run& each : runs) {
    std::string command = start_command(each.header());
    reported.push_back({.run = std::move(each),
                        .pictures = NoPictures{"Not evaluated: gradring report shows the models of these runs."},
                        .command = std::move(command)});
  }
  return html_report(reported);
}

void run(const CompareRunsOptions& options, const Words& words) {
  if (words.size() < 2)
    throw UsageError(
        fmt::format("expected two runs or more, found {}: gradring runs compare RUN RUN...", words.size()));
  check_output({.option = "--html", .path = options.html, .is_ours = page::is_page}, options.replace);
  std::vector<Run> runs;
  for (const std::string& word : words) {
    runs.push_back(open_run(word));
    print_warnings(runs.back().history.warnings);
  }
  if (options.json)
    print_json(comparison_json(runs));
  else
    print_shown(comparison_of(runs, columns_of_output(), glyphs_of_locale()));
  if (!options.html.empty()) write_named_file(options.html, html_comparison(std::move(runs)));
}

struct RemoveRunsOptions {
  bool yes = false;
  bool dry_run = false;
};

CommandLine command_line(RemoveRunsOptions& options) {
  return {.command = "gradring runs rm",
          .purpose = "removal of run directories, with their checkpoints",
          .usage = {"gradring runs rm RUN... [--yes] [--dry-run]"},
          .options = {switch_option("yes,y", "removal without confirmation; required without a terminal", options.yes),
                      switch_option("dry-run", "list of what would be removed; nothing is removed", options.dry_run)},
          .takes_words = true,
          .notes =
              "RUN is a run directory, or the name of one in runs. A run that is running is refused, and so is any "
              "other folder; then nothing is removed at all. Files that gradring did not write stay, and so does "
              "their folder. Links are not followed."};
}

void print_removal(const RunRemoval& removal, const RemoveRunsOptions& options) {
  const std::string text = fmt::format("{}: {} files, {}", removal.run.string(), removal.files.size(),
                                       file_size_text(static_cast<double>(removal.bytes)));
  if (options.dry_run)
    for (const auto& file : removal.files) print_text("would remove {}\n", file.string());
  for (const auto& kept : removal.kept)
    print_text("{} {}, which gradring did not write\n", options.dry_run ? "would keep" : "keeps", kept.string());
  print_text("{} {}\n", options.dry_run ? "would remove" : options.yes ? "removes" : "to remove:", text);
}

/// Errors    UsageError if there is no terminal to ask on.
bool is_confirmed(std::size_t runs) {
  if (::isatty(STDIN_FILENO) == 0)
    throw UsageError("standard input is no terminal on which to ask: confirm the removal with --yes");
  print_text("Remove {} run{}? [y/N] ", runs, runs == 1 ? "" : "s");
  flush_standard_output();
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

void run(const RemoveRunsOptions& options, const Words& words) {
  if (words.empty()) throw UsageError("no run to remove: use gradring runs rm RUN...");
  std::vector<RunRemoval> removals;
  std::set<std::filesystem::path> named;  // a run may be named twice
  for (const std::string& word : words)
    if (RunRemoval removal = plan_removal(word); named.insert(std::filesystem::canonical(removal.run)).second)
      removals.push_back(std::move(removal));
  for (const RunRemoval& removal : removals) print_removal(removal, options);
  if (options.dry_run) return;
  if (!options.yes && !is_confirmed(removals.size())) {
    print_text("nothing was removed\n");
    return;
  }
  for (const RunRemoval& removal : removals) remove(removal);
}

constexpr std::string_view kFormats[] = {"csv"};
constexpr std::string_view kEvents[] = {"train", "eval", "ranks", "checkpoint", "restart", "fault", "header", "end"};

struct ExportRunOptions {
  std::string format = "csv";
  std::string event = "train";
  std::string output;
  Replace replace = Replace::ours;
};

CommandLine command_line(ExportRunOptions& options) {
  return {.command = "gradring runs export",
          .purpose = "events of a run as CSV",
          .usage = {"gradring runs export RUN [--event NAME] [--output FILE]"},
          .options = {choice_option("format", kFormats, "format of the output (default csv)", options.format),
                      choice_option("event", kEvents, "kind of event, a row each (default train)", options.event),
                      text_option("output,o", "FILE", "file to write (default standard output)", options.output),
                      force_option(options.replace)},
          .takes_words = true,
          .notes =
              "RUN is a run directory, or the name of one in runs. Columns are the members that docs/metrics.md "
              "describes; a ranks event has a row for each rank. Absent values are empty, NaN and infinity are "
              "nan."};
}

void run(const ExportRunOptions& options, const Words& words) {
  const auto run_dir = find_run(only_word(words, "gradring runs export RUN"));
  check_output({.option = "--output", .path = options.output, .is_ours = is_exported_csv}, options.replace);
  std::optional<NamedFile> file;
  if (!options.output.empty()) file.emplace(options.output);
  const TextSink sink = [&](std::string_view part) {
    if (file)
      file->write(part);
    else
      print_data(part);
  };
  print_warnings(export_csv(metrics_of(run_dir), options.event, sink));
  if (file) file->finish();
}

}  // namespace

const Command kRunsLs = make_command<ListRunsOptions>("ls", "table of runs: state, results, loss curve");
const Command kRunsShow = make_command<ShowRunOptions>("show", "one run in full");
const Command kRunsCompare = make_command<CompareRunsOptions>("compare", "differences in settings and results");
const Command kRunsRm = make_command<RemoveRunsOptions>("rm", "removal of run directories");
const Command kRunsExport = make_command<ExportRunOptions>("export", "events of a run as CSV");

}  // namespace gradring::train
