// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "train/app/commands/commands.h"
#include "train/app/commands/train_command.h"
#include "train/core/config/option_sources.h"
#include "train/core/setup/compute.h"
#include "train/core/setup/datasets.h"
#include "train/core/setup/named_output.h"
#include "train/core/trainer/from_config.h"
#include "train/core/trainer/memory_plan.h"
#include "train/options/print_text.h"
#include "train/records/metrics/named_file.h"

namespace gradring::train {
namespace {

struct PlanOptions {
  ParsedTrain train;
  int world_size = 0;  ///< 0: as --nprocs says
  std::string json_file;
  Replace replace = Replace::ours;
};

CommandLine command_line(PlanOptions& options) {
  CommandLine line{.command = "gradring plan",
                   .purpose = "device memory that a training takes on each rank; nothing is trained or allocated",
                   .usage = {"gradring plan [OPTIONS of gradring train] --world-size N"},
                   .options = config_options(options.train),
                   .notes = "A run writes the counted bytes beside this plan into summary.json (\"memory\")."};
  line.options.push_back(count_option("world-size", "total number of ranks (default --nprocs)", 1, options.world_size));
  line.options.push_back(json_file_option(options.json_file));
  line.options.push_back(force_option(options.replace));
  for (Option& option : std::span(line.options).last(3)) option.group = "General";
  return line;
}

/// `where`: what the table is of.
void print_table(std::string_view where, const MemoryTable& table) {
  constexpr double kMebibyte = 1024 * 1024;
  const auto row = [](std::string_view name, std::size_t bytes) {
    print_text("{:<14} {:>16} {:>12.2f}\n", name, bytes, static_cast<double>(bytes) / kMebibyte);
  };
  print_text("{:<14} {:>16} {:>12}\n", where, "bytes", "MiB");
  for (const MemoryClass each : all_memory_classes()) row(name_of(each), table[each]);
  row("total", table.total());
}

nlohmann::ordered_json to_json(const MemoryTable& table) {
  nlohmann::ordered_json bytes;
  for (const MemoryClass each : all_memory_classes()) bytes[std::string(name_of(each))] = table[each];
  bytes["total"] = table.total();
  return bytes;
}

/// How the file of --json-file begins.
bool is_plan(std::string_view head) { return head.starts_with("{\n  \"world_size\": "); }

void run(PlanOptions& options) {
  check_output({.option = "--json-file", .path = options.json_file, .is_ours = is_plan}, options.replace);
  const TrainConfig config = resolve(options.train.options, system_variables(), options.train.config_file).config;
  const int world_size = options.world_size > 0 ? options.world_size : static_cast<int>(config.nprocs);

  const WorkerEnvironment environment;
  const Compute compute = make_compute(
      compute_spec(config, threads_of_device(config, environment, system_variable), environment.local_rank));
  const Datasets sets = open_datasets(config);
  for (const std::string& remark : sets.remarks) data::print_remark(remark);
  const MemoryPlanSpec spec = memory_plan_spec(config, *compute.device, *sets.train_set, world_size);
  const MemoryPlanWorld where{.device = *compute.device,
                              .kernels = compute.kernels,
                              .backend = *compute.backend,
                              .train_set = *sets.train_set,
                              .evaluated = sets.validation_set ? *sets.validation_set : *sets.test_set};
  const ProgramMemories programs = plan_programs(spec, where);
  const MemoryTable table = plan_memory(spec, where, programs);
  print_text("{} on {}, batches of {} a rank, {}, {}; {} rank{}; device {}, backend {}\n\n", config.model,
             config.dataset, config.batch_size, precision_name(spec.replica.precision), word_of(config.optimizer.kind),
             world_size, world_size == 1 ? "" : "s", compute.device->id().to_string(), compute.backend->name());
  nlohmann::ordered_json json{{"world_size", world_size}, {"planned_bytes", to_json(table)}};
  print_table(config.data_parallel > 1 ? "first device" : "on each rank", table);
  if (config.data_parallel > 1) {
    const MemoryTable further = plan_further_device(spec, where, programs);
    print_text("\n");
    print_table("each other", further);
    json["further_devices"] = config.data_parallel - 1;
    json["further_device_bytes"] = to_json(further);
  }
  print_text("\nNot counted: pinned memory of the host, and what libraries keep to themselves.\n");
  if (!options.json_file.empty()) write_named_file(options.json_file, json.dump(2) + "\n");
}

}  // namespace

const Command kPlanCommand = make_command<PlanOptions>("plan", "device memory that a training takes on each rank");

}  // namespace gradring::train
