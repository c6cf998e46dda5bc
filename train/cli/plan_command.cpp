// SPDX-License-Identifier: Apache-2.0
#include "train/cli/plan_command.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "data/datasets/open_dataset.h"
#include "train/cli/bench_options.h"
#include "train/cli/exit_code.h"
#include "train/cli/parse_train.h"
#include "train/cli/run_command.h"
#include "train/config/variables.h"
#include "train/memory/memory_plan.h"
#include "train/precision/precision.h"
#include "train/report/line_file.h"
#include "train/setup/compute.h"
#include "train/setup/processors.h"
#include "train/trainer/from_config.h"

namespace gradring::train {
namespace {

struct Words {
  ParsedTrain train;
  int world_size = 0;  ///< 0: as --nprocs says
  std::string json_file;
};

CommandLine command_line(Words& words) {
  CommandLine line{.command = "gradring plan", .options = config_options(words.train)};
  line.options.push_back(
      count_option("world-size", "ranks that train together [as --nprocs says]", 1, words.world_size));
  line.options.push_back(json_option(words.json_file));
  return line;
}

void print_help(const CommandLine& line) {
  fmt::print(
      "gradring plan: what memory a training takes on each rank's device; nothing is trained or allocated there\n\n"
      "  gradring plan [options of gradring train] --world-size N\n\n"
      "A run lays what it counted beside the same table: \"memory\" in its summary.json.\n\n{}",
      help_of(line.options));
}

void print_table(const MemoryTable& table) {
  constexpr double kMebibyte = 1024 * 1024;
  const auto row = [](std::string_view name, std::size_t bytes) {
    fmt::print("{:<14} {:>16} {:>12.2f}\n", name, bytes, static_cast<double>(bytes) / kMebibyte);
  };
  fmt::print("{:<14} {:>16} {:>12}\n", "on each rank", "bytes", "MiB");
  for (const MemoryClass each : all_memory_classes()) row(name_of(each), table[each]);
  row("total", table.total());
  fmt::print("\nNot counted: pinned memory of the host, and what libraries keep to themselves.\n");
}

nlohmann::json to_json(const MemoryTable& table, int world_size) {
  nlohmann::ordered_json bytes;
  for (const MemoryClass each : all_memory_classes()) bytes[std::string(name_of(each))] = table[each];
  bytes["total"] = table.total();
  return {{"world_size", world_size}, {"planned_bytes", bytes}};
}

void plan(std::span<const std::string> args) {
  Words words;
  const CommandLine line = command_line(words);
  if (read_command_line(line, args).help) return print_help(line);
  const TrainConfig config = resolve(words.train.options, system_variables(), words.train.config_file).config;
  const int world_size = words.world_size > 0 ? words.world_size : static_cast<int>(config.nprocs);

  const WorkerEnvironment place;
  const Compute compute = make_compute(
      compute_spec(config, threads_of_rank(threads_option(config), place, system_variable), place.local_rank));
  const auto train_set = data::open_dataset(config.dataset, data::Split::train, config.data_dir);
  const MemoryPlanSpec spec = memory_plan_spec(config, *compute.device, *train_set, world_size);
  const MemoryPlanPlace where{
      .device = *compute.device, .kernels = compute.kernels, .backend = *compute.backend, .train_set = *train_set};
  const MemoryTable table = plan_memory(spec, where, plan_programs(spec, where));
  fmt::print("{} on {}, batches of {} a rank, {}, {}; {} rank{}; device {}, backend {}\n\n", config.model,
             config.dataset, config.batch_size, precision_name(spec.replica.precision), config.optimizer.name,
             world_size, world_size == 1 ? "" : "s", compute.device->id().to_string(), compute.backend->name());
  print_table(table);
  if (!words.json_file.empty()) write_named_file(words.json_file, to_json(table, world_size).dump(2) + "\n");
}

}  // namespace

int plan_main(std::span<const std::string> args) {
  return run_command("gradring plan", [args] {
    plan(args);
    return kOk;
  });
}

}  // namespace gradring::train
