// SPDX-License-Identifier: Apache-2.0
#include "train/bench/commands/training_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "train/bench/commands/options.h"
#include "train/bench/training_page.h"
#include "train/core/setup/named_output.h"
#include "train/options/commands.h"
#include "train/options/print_text.h"
#include "train/options/shell_words.h"
#include "train/options/usage_error.h"
#include "train/records/metrics/named_file.h"
#include "train/view/page/generator.h"

namespace gradring::train {

std::vector<Option> training_bench_options(TrainingBenchOptions& options, std::vector<Option> more) {
  std::vector<Option> all = dataset_options(options.task.dataset, options.task.data_dir, std::move(more));
  all.insert(
      all.end(),
      {text_option("device", "auto|cpu|cuda", "compute device of every row (default cpu)", options.task.device),
       {.name = "simulate-gpu",
        .value = "none",
        .help = "only none: a simulated GPU has no times to compare (default none)",
        .read =
            [](std::string_view text) {
              if (text != "none")
                throw UsageError(
                    fmt::format("--simulate-gpu is '{}', but this benchmark compares times, which a "
                                "simulated GPU does not have: use gradring train",
                                text));
            }},
       count_option("epochs", "epochs of each training (default 1)", 1, options.task.epochs),
       count_option("steps", "steps after which each training ends; 0: after the epochs (default 0)", 0,
                    options.task.steps),
       count_option("rounds", "trainings of each row, alternating; medians are shown (default 1)", 1, options.rounds),
       switch_option("list", "list of what would be trained, with its command; no training", options.list),
       json_file_option(options.json_file),
       text_option("csv", "FILE", "file for the table as CSV", options.csv_file),
       text_option("html", "FILE", "file for the table and plots as a page", options.html_file),
       text_option("plots", "PREFIX", "prefix of the names of the plots' SVG files", options.plots),
       force_option(options.replace)});
  return all;
}

void list_layouts(std::span<const bench::TrainingLayout> layouts, const bench::TrainingTask& task) {
  std::size_t width = 0;
  for (const bench::TrainingLayout& layout : layouts) width = std::max(width, layout.name.size());
  std::vector<std::string> lines;
  for (const bench::TrainingLayout& layout : layouts)
    lines.push_back(
        fmt::format("{:<{}}  gradring {}", layout.name, width, shell_command(bench::command_of(layout, task))));
  print_list("trainings:", lines);
  if (task.device != "cuda") return;
  if (const std::string missing = missing_gpu(); !missing.empty())
    print_text("--device cuda is not available here: {}\n", missing);
}

bench::BenchRun begin_bench(const std::string& benchmark, const TrainingBenchOptions& options) {
  check_output({.option = "--csv", .path = options.csv_file, .is_ours = bench::is_table}, options.replace);
  check_output({.option = "--html", .path = options.html_file, .is_ours = page::is_page}, options.replace);
  for (const std::string& plot : bench::plot_files(options.plots))
    check_output({.option = "--plots", .path = plot, .is_ours = page::is_picture}, options.replace);
  return bench::BenchRun(benchmark, {.json = options.json_file, .csv = "", .replace = options.replace});
}

void write_table(bench::BenchRun& run, const bench::TrainingTable& table, const TrainingBenchOptions& options) {
  print_text("{}\n{}\n\n{}", run.title(), table.note, bench::to_text(table));
  if (!options.csv_file.empty()) write_named_file(options.csv_file, bench::to_csv(table));
  for (const bench::TrainingRow& row : table.rows) {
    bench::BenchMeasurement measured{.key = {{"dataset", options.task.dataset},
                                             {"epochs", std::to_string(options.task.epochs)},
                                             {"steps", std::to_string(options.task.steps)},
                                             {"device", options.task.device},
                                             {"global_batch", std::to_string(row.layout.global_batch)},
                                             {"framework", row.framework},
                                             {"name", row.layout.name}},
                                     .unit = "s"};
    for (const bench::Measurement& round : row.rounds) measured.samples.push_back(round.seconds);
    run.add(std::move(measured));
  }
  run.finish(bench::to_json(table, options.task));
}

}  // namespace gradring::train
