// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "data/bench/loader_bench.h"
#include "data/datasets/open_dataset.h"
#include "kernels/host/host_device.h"
#include "train/bench/bench_run.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/options.h"
#include "train/options/print_text.h"
#include "train/view/runs/text_table.h"

namespace gradring::train {
namespace {

using data::bench::LoaderReport;
using data::bench::LoaderRow;

struct LoaderBenchOptions {
  std::string dataset = "digits";
  std::string data_dir;
  CommonBenchOptions common;
  data::bench::LoaderBenchSpec bench;
};

CommandLine command_line(LoaderBenchOptions& options) {
  return {
      .command = "gradring bench loader",
      .purpose = "samples per second that are gathered, normalized and batched",
      .usage = {"gradring bench loader [--dataset mnist --data-dir DIR]"},
      .options = with_common_options(
          dataset_options(options.dataset, options.data_dir,
                          {count_option("batch-size", "samples per batch (default 256)", 1, options.bench.batch_size),
                           count_option("depth", "batches in flight (default 4)", 1, options.bench.depth),
                           count_option("epochs", "measured epochs (default 11)", 1, options.bench.epochs)}),
          options.common)};
}

void print(const LoaderReport& report, const LoaderBenchOptions& options) {
  print_text("{}: {} samples of {}, batch {}, {} shuffled epochs; samples a second, by the median epoch\n\n",
             options.dataset, report.samples, report.shape.to_string(), options.bench.batch_size, options.bench.epochs);
  TextTable table = TextTable::with({""}, {"per core", "on the clock", "GB/s written", "epoch ms", "p95 ms", "noise"});
  for (const LoaderRow& row : report.rows)
    table.rows.push_back(
        {row.name, fmt::format("{:.0f}", report.a_second(row.cpu)), fmt::format("{:.0f}", report.a_second(row.wall)),
         fmt::format("{:.2f}", report.written_gigabytes(row)), fmt::format("{:.2f}", row.wall.median * 1e3),
         fmt::format("{:.2f}", row.wall.p95 * 1e3), noise_text(row.wall)});
  print_shown(table.text());
  print_text(
      "\nfill     gather and normalise, on one thread\n"
      "loader   the same by the loader's thread, with the hand-over of batches to a caller that does nothing with "
      "them\n"
      "per core: samples over the time of all processors together\n");
}

nlohmann::json results_of(const LoaderReport& report, const LoaderBenchOptions& options) {
  nlohmann::json rows = nlohmann::json::array();
  for (const LoaderRow& row : report.rows)
    rows.push_back({{"name", row.name},
                    {"samples_per_second_per_core", report.a_second(row.cpu)},
                    {"samples_per_second", report.a_second(row.wall)},
                    {"written_gb_per_second", report.written_gigabytes(row)},
                    {"epoch_seconds", to_json(row.wall)},
                    {"epoch_cpu_seconds", to_json(row.cpu)}});
  return {{"dataset", options.dataset},
          {"samples", report.samples},
          {"batch_size", options.bench.batch_size},
          {"depth", options.bench.depth},
          {"rows", rows}};
}

void add_measurements(bench::BenchRun& run, const LoaderReport& report, const LoaderBenchOptions& options) {
  for (const LoaderRow& row : report.rows)
    for (const auto& [clock, seconds] : {std::pair("wall", &row.wall), std::pair("cpu", &row.cpu)})
      run.add(in_microseconds({{"dataset", options.dataset},
                               {"batch_size", std::to_string(options.bench.batch_size)},
                               {"depth", std::to_string(options.bench.depth)},
                               {"name", row.name},
                               {"clock", clock}},
                              *seconds));
}

void run(LoaderBenchOptions& options) {
  if (options.common.list) {
    const std::vector<std::string> names(data::dataset_names().begin(), data::dataset_names().end());
    print_list("epochs of --dataset, by fill and by loader, in wall and CPU time:", names);
    return;
  }
  bench::BenchRun run("loader", options.common.files);
  print_text("{}\n", run.title());
  const auto dataset = data::open_dataset(options.dataset, data::Split::train, options.data_dir);
  kernels::HostDevice device;
  const LoaderReport report = data::bench::bench_loader(*dataset, device, options.bench);
  print(report, options);
  add_measurements(run, report, options);
  run.finish(results_of(report, options));
}

}  // namespace

const Command kBenchLoader =
    make_command<LoaderBenchOptions>("loader", "samples per second that become normalized batches");

}  // namespace gradring::train
