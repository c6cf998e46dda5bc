// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/file.h"
#include "train/bench/bench_run.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/options.h"
#include "train/bench/result_diff.h"
#include "train/bench/result_file.h"
#include "train/bench/result_variants.h"
#include "train/options/exit_code.h"
#include "train/options/parse_value.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"
#include "train/records/metrics/csv.h"
#include "train/view/runs/text_table.h"

namespace gradring::train {
namespace {

using bench::BenchResult;
using bench::DiffRow;
using bench::DiffVerdict;
using bench::MeasurementKey;
using bench::ResultDiff;

struct DiffBenchOptions {
  bench::DiffSpec spec;
  bool json = false;
  bool csv = false;
};

constexpr const char* kDiffNotes =
    "With one file of bench kernels: its variants side by side, each quantity in a row.\n\n"
    "OLD and NEW are files of -J, or lists of files of several runs (a.json,b.json), each of which then counts as one "
    "repetition: its median. Rows are matched by their keys; those that are left, without the members of --ignore.\n\n"
    "noise is the spread of the repetitions, 1.4826 times their median absolute deviation, in percent of the median. A "
    "row is slower or faster if the medians differ by more than the noise of both (root of the sum of squares) and a "
    "rank test (Mann-Whitney) also finds a difference (p < 0.02). If a side is one run, the change must also exceed "
    "3 %, by which runs of one program differ. The result is unknown with fewer than 5 repetitions. With --threshold "
    "the change alone decides. Counters of a simulated GPU have no noise: each difference is one; the table leaves out "
    "what is equal. Instructions and bounds become slower or faster, what explains them has changed. "
    "docs/benchmarks.md in the sources shows how to measure.\n\n";

constexpr const char* kDiffExamples =
    "\nExamples:\n"
    "  gradring bench kernels --op relu -J old.json\n"
    "  gradring bench diff old.json new.json\n"
    "  gradring bench diff old.json new.json --threshold 5\n"
    "  gradring bench diff shm.json tcp.json --ignore comm\n"
    "  gradring bench kernels --device cuda --simulate-gpu h100 --op gemm \\\n"
    "    --counters -J gemm.json\n"
    "  gradring bench diff gemm.json\n";

constexpr double kPercent = 100;

CommandLine command_line(DiffBenchOptions& options) {
  const auto parse_percent = [](std::string_view name, std::string_view text) {
    return parse_number(name, text, 0) / kPercent;
  };
  const auto parse_names = [](std::string_view, std::string_view text) { return comma_separated(std::string(text)); };
  return {
      .command = "gradring bench diff",
      .purpose =
          "comparison of two results of a benchmark, or of the variants of one: what is slower or faster, beyond "
          "the noise",
      .usage = {"gradring bench diff OLD.json NEW.json [OPTIONS]", "gradring bench diff FILE.json [--json | --csv]"},
      .options = {value_option("threshold", "PERCENT",
                               "smallest change of a median that is slower or faster (default: more than the noise)",
                               parse_percent, options.spec.threshold),
                  value_option("ignore", "NAME,...", "members of the keys that may differ, such as comm or variant",
                               parse_names, options.spec.ignored),
                  json_switch(options.json), switch_option("csv", "table on standard output as CSV", options.csv)},
      .takes_words = true,
      .notes =
          kDiffNotes +
          exit_codes_text({{0, "nothing is slower"}, {1, "something is slower"}, {2}, {4, "a file is not a result"}}) +
          kDiffExamples};
}

BenchResult read_side(const std::string& files) {
  std::vector<BenchResult> results;
  for (const std::string& file : comma_separated(files)) results.push_back(bench::read_bench_result(file));
  if (results.empty()) throw UsageError("expected a file, found an empty name: gradring bench diff OLD.json NEW.json");
  return bench::merged(std::move(results));
}

std::string change_text(std::optional<double> change) {
  return change ? fmt::format("{:+.1f} %", kPercent * *change) : "";
}

/// Members of the keys, in order of appearance: those with one value in all rows, and the others.
struct KeyColumns {
  std::vector<std::string> varying;
  std::string common;  ///< "dataset mnist, depth 4"

  explicit KeyColumns(const std::vector<DiffRow>& rows) {
    for (const std::string& name : bench::key_names(rows)) {
      std::set<std::string> values;
      for (const DiffRow& row : rows) values.insert(bench::value_of(row.key, name));
      if (values.size() > 1)
        varying.push_back(name);
      else
        common += fmt::format("{}{} {}", common.empty() ? "" : ", ", name, *values.begin());
    }
  }
};

std::string key_text(const MeasurementKey& key) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : key) parts.push_back(name + " " + value);
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// Five digits; of a count that is not much longer, all.
std::string value_text(double value) {
  constexpr double kMostExact = 1e9;
  return value == std::floor(value) && std::abs(value) < kMostExact ? fmt::format("{:.0f}", value)
                                                                    : fmt::format("{:.5g}", value);
}

/// What a file lacks: a line for each row; for all counters of the same work one.
void print_only(const std::filesystem::path& path, const std::vector<MeasurementKey>& keys) {
  std::vector<std::pair<std::string, std::size_t>> works;  // their counters, 0 for another row
  for (MeasurementKey key : keys) {
    const bool is_counter = std::erase_if(key, [](const auto& member) { return member.first == "counter"; }) > 0;
    const std::string work = key_text(key);
    if (!is_counter || works.empty() || works.back().first != work) works.emplace_back(work, 0);
    works.back().second += is_counter ? 1 : 0;
  }
  for (const auto& [work, counters] : works)
    print_text("only in {}: {}{}\n", path.string(), work,
               counters == 0 ? "" : fmt::format(", {} counter{}", counters, counters == 1 ? "" : "s"));
}

void print_table(const ResultDiff& diff, const BenchResult& before, const BenchResult& after) {
  const KeyColumns columns(diff.rows);
  print_text("bench {}: {} of commit {} ({}), then {} of commit {} ({})\n", after.benchmark, before.path.string(),
             before.commit, before.date, after.path.string(), after.commit, after.date);
  if (!columns.common.empty()) print_text("{}\n", columns.common);
  std::vector<std::string> texts = columns.varying;
  texts.emplace_back("unit");
  TextTable table = TextTable::with(texts, {"old", "noise", "new", "noise", "change", "verdict"});
  for (const DiffRow& row : diff.rows) {
    if (row.is_exact && row.verdict == DiffVerdict::same) continue;
    std::vector<std::string>& cells = table.rows.emplace_back();
    for (const std::string& name : columns.varying) cells.push_back(bench::value_of(row.key, name));
    const auto noise = [&](const kernels::bench::Statistics& values) { return row.is_exact ? "" : noise_text(values); };
    cells.insert(cells.end(),
                 {row.unit, value_text(row.old_values.median), noise(row.old_values), value_text(row.new_values.median),
                  noise(row.new_values), change_text(row.change), std::string(name_of(row.verdict))});
  }
  print_text("\n");
  if (!table.rows.empty()) print_shown(table.text());
  print_only(before.path, diff.only_old);
  print_only(after.path, diff.only_new);
  print_text("\n{} slower, {} faster, {} same, {} unknown", diff.count(DiffVerdict::slower),
             diff.count(DiffVerdict::faster), diff.count(DiffVerdict::same), diff.count(DiffVerdict::unknown));
  const std::size_t changed = diff.count(DiffVerdict::changed);
  print_text("{}\n", changed > 0 ? fmt::format(", {} changed", changed) : "");
}

void print_csv(const ResultDiff& diff) {
  const std::vector<std::string> names = bench::key_names(diff.rows);
  std::vector<std::string> header = names;
  for (const char* name :
       {"unit", "old", "old_noise_percent", "new", "new_noise_percent", "change_percent", "p_value", "verdict"})
    header.emplace_back(name);
  print_data(csv_line(header));
  for (const DiffRow& row : diff.rows) {
    std::vector<std::string> line;
    for (const std::string& name : names) line.push_back(bench::value_of(row.key, name));
    line.push_back(row.unit);
    for (const auto* values : {&row.old_values, &row.new_values})
      line.insert(line.end(),
                  {fmt::format("{:.6g}", values->median), fmt::format("{:.4g}", kPercent * values->noise())});
    line.insert(line.end(), {row.change ? fmt::format("{:.4g}", kPercent * *row.change) : "",
                             fmt::format("{:.4g}", row.p_value), std::string(name_of(row.verdict))});
    print_data(csv_line(line));
  }
}

nlohmann::ordered_json values_json(const kernels::bench::Statistics& values) {
  return {{"count", values.count}, {"median", values.median}, {"noise", values.noise()}};
}

void print_as_json(const ResultDiff& diff, const BenchResult& before, const BenchResult& after) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const DiffRow& row : diff.rows)
    rows.push_back({{"key", bench::to_json(row.key)},
                    {"unit", row.unit},
                    {"old", values_json(row.old_values)},
                    {"new", values_json(row.new_values)},
                    {"change", row.change ? nlohmann::ordered_json(*row.change) : nlohmann::ordered_json()},
                    {"p_value", row.p_value},
                    {"verdict", name_of(row.verdict)}});
  const auto keys = [](const std::vector<MeasurementKey>& all) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const MeasurementKey& key : all) json.push_back(bench::to_json(key));
    return json;
  };
  const auto side = [](const BenchResult& result) {
    return nlohmann::ordered_json{{"file", result.path.string()}, {"commit", result.commit}, {"date", result.date}};
  };
  print_json({{"benchmark", after.benchmark},
              {"old", side(before)},
              {"new", side(after)},
              {"rows", rows},
              {"only_old", keys(diff.only_old)},
              {"only_new", keys(diff.only_new)},
              {"warnings", diff.warnings}});
}

/// Quantities in rows, variants in columns; without rows that are 0 everywhere.
void print_variants(const std::vector<bench::VariantsGroup>& groups) {
  for (const bench::VariantsGroup& group : groups) {
    print_text("{}\n", key_text(group.work));
    TextTable table = TextTable::with({"", "unit"}, group.variants);
    for (const bench::VariantsRow& row : group.rows) {
      if (std::ranges::all_of(row.medians, [](const auto& median) { return median == 0.0; })) continue;
      std::vector<std::string>& cells = table.rows.emplace_back();
      std::vector<std::string> values;
      for (const auto& [name, value] : row.key)
        if (name != "device") values.push_back(value);
      cells = {fmt::format("{}", fmt::join(values, ", ")), row.unit};
      for (const auto& median : row.medians) cells.push_back(median ? value_text(*median) : "");
    }
    print_shown(table.text());
    print_text("\n");
  }
}

void print_variants_as_csv(const std::vector<bench::VariantsGroup>& groups) {
  print_data(csv_line(Words{"work", "quantity", "unit", "variant", "median"}));
  for (const bench::VariantsGroup& group : groups)
    for (const bench::VariantsRow& row : group.rows)
      for (std::size_t i = 0; i < group.variants.size(); ++i)
        if (row.medians[i])
          print_data(csv_line(Words{key_text(group.work), key_text(row.key), row.unit, group.variants[i],
                                    fmt::format("{:.10g}", *row.medians[i])}));
}

void print_variants_as_json(const BenchResult& result, const std::vector<bench::VariantsGroup>& groups) {
  nlohmann::ordered_json works = nlohmann::ordered_json::array();
  for (const bench::VariantsGroup& group : groups) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const bench::VariantsRow& row : group.rows) {
      nlohmann::ordered_json medians = nlohmann::ordered_json::object();
      for (std::size_t i = 0; i < group.variants.size(); ++i)
        if (row.medians[i]) medians[group.variants[i]] = *row.medians[i];
      rows.push_back({{"key", bench::to_json(row.key)}, {"unit", row.unit}, {"medians", medians}});
    }
    works.push_back({{"work", bench::to_json(group.work)}, {"rows", rows}});
  }
  print_json({{"file", result.path.string()}, {"benchmark", result.benchmark}, {"works", works}});
}

void compare_variants(const DiffBenchOptions& options, const BenchResult& result) {
  if (options.spec.threshold || !options.spec.ignored.empty())
    throw UsageError("--threshold and --ignore compare two files: leave them out, or name a second file");
  const std::vector<bench::VariantsGroup> groups = bench::variants_of(result);
  if (options.json)
    print_variants_as_json(result, groups);
  else if (options.csv)
    print_variants_as_csv(groups);
  else
    print_variants(groups);
}

void run(DiffBenchOptions& options, const Words& words) {
  if (words.empty() || words.size() > 2)
    throw UsageError(
        fmt::format("expected one or two files, found {}: gradring bench diff OLD.json NEW.json", words.size()));
  if (options.json && options.csv) throw UsageError("--json and --csv exclude each other: leave one out");
  if (words.size() == 1) return compare_variants(options, read_side(words[0]));
  const BenchResult before = read_side(words[0]);
  const BenchResult after = read_side(words[1]);
  const ResultDiff diff = bench::diff_results(before, after, options.spec);
  for (const std::string& warning : diff.warnings)
    print_to_stderr(fmt::format("gradring bench diff: warning: {}\n", warning));
  if (options.json)
    print_as_json(diff, before, after);
  else if (options.csv)
    print_csv(diff);
  else
    print_table(diff, before, after);
  flush_standard_output();
  if (const std::size_t slower = diff.count(DiffVerdict::slower); slower > 0)
    throw Error(fmt::format("{} of {} rows are slower", slower, diff.rows.size()));
}

}  // namespace

const Command kBenchDiff =
    make_command<DiffBenchOptions>("diff", "comparison of two results of a benchmark: slower or faster");

}  // namespace gradring::train
