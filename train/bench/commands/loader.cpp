// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "data/bench/loader_bench.h"
#include "data/datasets/open_dataset.h"
#include "kernels/bench/statistics.h"
#include "kernels/host/host_device.h"
#include "train/bench/bench_run.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/options.h"
#include "train/core/config/augment_option.h"
#include "train/options/print_text.h"
#include "train/view/runs/text_table.h"

namespace gradring::train {
namespace {

struct LoaderBenchOptions {
  TrainConfig data;
  CommonBenchOptions common;
  data::bench::LoaderBenchSpec bench;
};

CommandLine command_line(LoaderBenchOptions& options) {
  return {
      .command = "gradring bench loader",
      .purpose = "samples per second that are gathered, normalized and batched",
      .usage = {"gradring bench loader [--dataset mnist --data-dir DIR]"},
      .options = with_common_options(
          dataset_options(options.data,
                          {count_option("batch-size", "samples per batch (default 256)", 1, options.bench.batch_size),
                           count_option("depth", "batches in flight (default 4)", 1, options.bench.depth),
                           count_option("threads", "threads of the loader (default 1)", 1, options.bench.threads),
                           value_option("augment", "LIST", "augmentation, as of gradring train (default none)",
                                        parse_augment, options.bench.augment),
                           count_option("epochs", "measured epochs (default 11)", 1, options.bench.epochs)}),
          options.common)};
}

/// Seconds per epoch of one way to make batches: wall clock, and CPU time of all threads.
struct LoaderRow {
  const char* name;
  kernels::bench::Statistics wall, cpu;
};

LoaderRow row_of(const char* name, const std::vector<data::bench::EpochTime>& times) {
  std::vector<double> wall, cpu;
  for (const data::bench::EpochTime& time : times) {
    wall.push_back(time.wall.count());
    cpu.push_back(time.cpu.count());
  }
  return {.name = name, .wall = kernels::bench::statistics_of(wall), .cpu = kernels::bench::statistics_of(cpu)};
}

/// Prints the rows, adds them to the measurements, and returns them.
nlohmann::json add_rows(const std::vector<LoaderRow>& measured, const data::Dataset& dataset,
                        const LoaderBenchOptions& options, bench::BenchRun& run) {
  TextTable table = TextTable::with({""}, {"per core", "on the clock", "GB/s written", "epoch ms", "p95 ms", "noise"});
  nlohmann::json rows = nlohmann::json::array();
  for (const LoaderRow& row : measured) {
    const auto samples = static_cast<double>(dataset.size());
    const double per_core = samples / row.cpu.median, per_second = samples / row.wall.median;
    const double gigabytes = per_core * static_cast<double>(dataset.shape().elements()) * sizeof(float) / 1e9;
    table.rows.push_back({row.name, fmt::format("{:.0f}", per_core), fmt::format("{:.0f}", per_second),
                          fmt::format("{:.2f}", gigabytes), fmt::format("{:.2f}", row.wall.median * 1e3),
                          fmt::format("{:.2f}", row.wall.p95 * 1e3), noise_text(row.wall)});
    rows.push_back({{"name", row.name},
                    {"samples_per_second_per_core", per_core},
                    {"samples_per_second", per_second},
                    {"written_gb_per_second", gigabytes},
                    {"epoch_seconds", to_json(row.wall)},
                    {"epoch_cpu_seconds", to_json(row.cpu)}});
    for (const auto& [clock, seconds] : {std::pair("wall", &row.wall), std::pair("cpu", &row.cpu)})
      run.add(in_microseconds({{"dataset", options.data.dataset},
                               {"batch_size", std::to_string(options.bench.batch_size)},
                               {"depth", std::to_string(options.bench.depth)},
                               {"threads", std::to_string(options.bench.threads)},
                               {"augment", data::text_of(options.bench.augment)},
                               {"name", row.name},
                               {"clock", clock}},
                              *seconds));
  }
  print_shown(table.text());
  return rows;
}

void run(LoaderBenchOptions& options) {
  if (options.common.list)
    return print_list("epochs of --dataset, by fill and by loader, in wall and CPU time:", data::dataset_names());
  bench::BenchRun run("loader", options.common.files);
  print_text("{}\n", run.title());
  const auto dataset = open_chosen(options.data);
  kernels::HostDevice device;
  print_text(
      "{}: {} samples of {}, batch {}, {} shuffled epochs, augmentation {}; samples a second, by the median epoch\n\n",
      options.data.dataset, dataset->size(), dataset->shape().to_string(), options.bench.batch_size,
      options.bench.epochs, data::text_of(options.bench.augment));
  const std::vector<LoaderRow> measured = {row_of("fill", data::bench::time_filling(*dataset, device, options.bench)),
                                           row_of("loader", data::bench::time_loader(*dataset, device, options.bench))};
  const nlohmann::json rows = add_rows(measured, *dataset, options, run);
  print_text(
      "\nfill     gather, augment and normalise, on one thread\n"
      "loader   the same by the loader's threads (--threads), with the hand-over of batches to a caller that does "
      "nothing with "
      "them\n"
      "per core: samples over the time of all processors together\n");
  run.finish({{"dataset", options.data.dataset},
              {"samples", dataset->size()},
              {"batch_size", options.bench.batch_size},
              {"depth", options.bench.depth},
              {"threads", options.bench.threads},
              {"augment", data::text_of(options.bench.augment)},
              {"rows", rows}});
}

}  // namespace

const Command kBenchLoader =
    make_command<LoaderBenchOptions>("loader", "samples per second that become normalized batches");

}  // namespace gradring::train
