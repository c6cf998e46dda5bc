// SPDX-License-Identifier: Apache-2.0
#include "train/app/rank/rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "data/datasets/dataset.h"
#include "data/datasets/open_folder.h"
#include "data/images/image.h"
#include "kernels/base/available_memory.h"
#include "kernels/base/commit.h"
#include "kernels/base/host_name.h"
#include "train/core/config/options.h"
#include "train/core/setup/run_directory.h"
#include "train/core/setup/run_settings.h"
#include "train/core/trainer/from_config.h"
#include "train/core/trainer/training_state.h"
#include "train/records/checkpoint/error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// Rank 0 chooses for all.
std::string choice_of_rank_0(comm::ProcessGroup& group, const nn::Chooser& choose) {
  return group.broadcast_on_host(group.rank() == 0 ? choose() : std::string(), 0);
}

Checkpoint without_tensors(const Checkpoint& checkpoint) {
  return {.step = checkpoint.step, .model = {}, .state = {}, .about = checkpoint.about, .score = checkpoint.score};
}

/// A remark if the next step has another learning rate than in the run that saved the checkpoint.
std::string rate_change(const Checkpoint& saved, const fs::path& from, const TrainConfig& config,
                        const Trainer& trainer) {
  if (trainer.is_over()) return {};
  try {
    const kernels::step_state::StepState state = from_checkpoint(saved, from).replica.step;
    return describe_rate_change(
        {.before = saved_schedule(saved, saved_config(saved, from)),
         .now = {.spec = config.schedule, .peak = config.learning_rate, .steps = trainer.planned_steps()},
         .applied = state.applied_steps,
         .steps = trainer.progress().steps});
  } catch (const CheckpointError&) {  // without settings, as other programs write it
    return {};
  }
}

Compute open_device(const TrainConfig& config, const WorkerEnvironment& environment, const Ranks& ranks,
                    const std::map<std::string, std::string>& resumed_plans) {
  const unsigned threads = threads_of_device(config, environment, system_variable);
  if (config.pin) pin_to_own_cores(threads * static_cast<unsigned>(config.data_parallel), environment);
  ComputeSpec spec = compute_spec(config, threads, environment.local_rank);
  spec.share_choice = [&ranks](const nn::Chooser& choose) { return choice_of_rank_0(*ranks.group, choose); };
  spec.resumed_choice = [&resumed_plans](const std::string& layer) {
    const auto found = resumed_plans.find(layer);
    return found == resumed_plans.end() ? std::string() : found->second;
  };
  return make_compute(spec);
}

/// Those of --data-parallel besides the first, which names them in the log.
std::vector<Compute> open_further(const TrainConfig& config, const WorkerEnvironment& environment, Compute& first) {
  step_sizes(config, environment.world_size);  // rejects --data-parallel on several ranks
  std::vector<Compute> further =
      make_further_devices(compute_spec(config, first.threads, environment.local_rank), first, config.data_parallel);
  if (!further.empty())
    first.remarks.push_back(fmt::format("data parallel over {} devices, {} to {}: the first updates the weights",
                                        config.data_parallel, first.device->id().to_string(),
                                        further.back().device->id().to_string()));
  return further;
}

constexpr std::size_t kDigits = 16;  // of hashes in messages

/// Each rank's own, or compared by same_data, or what rank 0 alone writes.
constexpr std::string_view kOfEachRank[] = {"run-dir", "nprocs", "data-dir", "name", "tags"};
constexpr std::string_view kReadByRank0[] = {"weights", "optimizer-state", "resume"};

bool is_among(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// A value for the comparison of ranks, and for a message.
std::string compared_value(const TrainOption& option, const TrainConfig& config) {
  if (option.name != "model-text" || config.model_text.empty()) return option.show(config);
  data::Sha256Sum sum;
  sum.add(std::as_bytes(std::span(config.model_text)));
  return "a text with the SHA-256 " + data::to_hex(sum.finish()).substr(0, kDigits);
}

/// Whether an option names a file, where only rank 0's path counts.
std::string kind_of(const TrainOption& option, const TrainConfig& config) {
  const std::string value = option.show(config);
  const bool is_word =
      value == quoted("") || (option.name == "resume" && (config.resume == "none" || resumes_automatically(config)));
  return is_word ? value : "a path";
}

/// The directory by which runs that are started alike differ; empty if it is not given.
std::string given_run_dir(const TrainConfig& config) { return named_run_dir(config.run_dir).value_or("").string(); }

std::string step_text(std::int64_t step) { return step < 0 ? "missing" : fmt::format("of step {}", step); }

struct NamedSet {
  std::string_view name;
  const data::Dataset* set;
};

TransportKind transport_of(const TrainConfig& config) {
  return config.allreduce == AllReduce::nccl ? TransportKind::nccl : config.comm;
}

}  // namespace

Rank::Rank(const TrainConfig& config, const WorkerEnvironment& environment)
    : compute_(open_device(config, environment, ranks_, resumed_plans_)),
      others_(open_further(config, environment, compute_)),
      further_(further_devices(others_)) {
  check_comm(environment, transport_of(config), &compute_);  // also in a dry run, whose ranks do not join
}

std::string Rank::keep_plans(const Checkpoint& resumed) {
  resumed_plans_ = plans_by_layer(*resumed.about);
  const std::string there = resumed.about->value(kDevice, std::string()), here = compute_.device->description();
  if (resumed_plans_.empty() || there.empty()) return {};
  return fmt::format(
      "the kernels of each layer stay those that were chosen on {}, as far as {} has them, so that results round "
      "alike, and none is measured; --no-autotune, or --conv and --gemm, choose others",
      there, there == here ? "this device" : here);
}

comm::ProcessGroup& Rank::join(const TrainConfig& config, const WorkerEnvironment& environment) {
  const GroupSpec spec{.timeout = config.timeout,
                       .comm = transport_of(config),
                       .allow_shared_gpu = config.allow_shared_gpu,
                       .program = fmt::format("gradring {}, commit {}", GRADRING_VERSION, kCommit),
                       .run_dir = given_run_dir(config)};
  ranks_ = make_group(environment, spec, &compute_);
  return *ranks_.group;
}

void check_plan(const TrainConfig& config, const Compute& compute, const data::Dataset& train_set,
                const data::Dataset& evaluated, const WorkerEnvironment& environment, bool is_dry_run) {
  const MemoryPlanSpec spec = memory_plan_spec(config, *compute.device, train_set, environment.world_size);
  replica_model(spec.replica, train_set.shape(), train_set.classes());
  const bool is_gpu = compute.device->id().kind != kernels::DeviceKind::cpu;
  if (is_gpu && (config.autotune || !is_dry_run)) return;  // its layers are planned, and measured, with all ranks
  const MemoryPlanWorld world{.device = *compute.device,
                              .kernels = compute.kernels,
                              .backend = *compute.backend,
                              .train_set = train_set,
                              .evaluated = evaluated};
  const ProgramMemories programs = plan_programs(spec, world);
  if (is_gpu) return;
  std::size_t bytes = plan_memory(spec, world, programs).total();
  if (config.data_parallel > 1)
    bytes += static_cast<std::size_t>(config.data_parallel - 1) * plan_further_device(spec, world, programs).total();
  const int ranks = environment.local_world_size;
  const std::string lack = lack_of_memory(bytes * static_cast<std::size_t>(ranks));
  if (lack.empty()) return;
  throw DeviceError(fmt::format(
      "the training needs {} on this host, which has {} rank{} of it: choose a smaller --model or --batch-size, fewer "
      "ranks, or --zero; gradring plan lists what takes the memory",
      lack, ranks, ranks == 1 ? "" : "s"));
}

OwnFiles own_files(const TrainConfig& config, const WorkerEnvironment& environment, const Datasets& sets) {
  OwnFiles own{.hashes = hashes_of(sets)};
  if (environment.world_size == 1) return own;
  own.agreements = same_data(config, sets, own.hashes);
  own.two_runs = advice_for_two_runs(environment);
  PosixFileSystem files;
  if (resumes_automatically(config)) own.newest_step = newest_step(files, *named_run_dir(config.run_dir));
  return own;
}

std::vector<std::string> check_ranks_agree(comm::ProcessGroup& group, const TrainConfig& config, const Compute& compute,
                                           const OwnFiles& own) {
  std::vector<Agreement> agreements = {same_options(config), same_cpu_level(recorded_cpu_level(*compute.device))};
  std::ranges::copy(own.agreements, std::back_inserter(agreements));
  agreements.push_back(same_paths(config));
  std::vector<std::string> remarks = agree(group, agreements, given_run_dir(config), own.two_runs);
  if (resumes_automatically(config)) check_no_later_checkpoint(group, own.newest_step, *named_run_dir(config.run_dir));
  return remarks;
}

void begin_training(Trainer& trainer, const TrainConfig& config, comm::ProcessGroup& group, Start& start) {
  const Checkpoint saved = start.resume ? without_tensors(start.resume->checkpoint) : Checkpoint();
  const std::string choice = start.resume ? "resume" : start.weights ? "weights" : "draw";
  const std::string agreed = group.broadcast_on_host(choice, 0);
  if (agreed == "draw") trainer.begin_new();
  if (agreed == "weights")
    std::ranges::move(trainer.begin_with(start.weights ? std::move(*start.weights) : FirstWeights()),
                      std::back_inserter(start.remarks));
  if (agreed != "resume") return;
  const fs::path from = start.resume ? start.resume->from : fs::path();
  if (start.resume) {
    check_same_model(saved, from, config, trainer.facts());
    check_same_groups(saved, from, config);
  }
  std::vector<std::string> changes = trainer.resume(start.resume ? std::move(*start.resume) : ResumePoint());
  if (!start.resume) return;
  changes.push_back(step_change(saved, config, group.world_size()));
  changes.push_back(rate_change(saved, from, config, trainer));
  for (const std::string& change : changes)
    if (!change.empty()) start.remarks.push_back(change);
}

Agreement same_options(const TrainConfig& config) {
  Agreement agreement{
      .mine = {},
      .advice = always(
          "give all ranks the same options: on the command line, in GRADRING_* variables and in the --config file")};
  for (const TrainOption& option : train_options())
    if (!is_among(kOfEachRank, option.name))
      agreement.mine.values.push_back({option.name, is_among(kReadByRank0, option.name)
                                                        ? kind_of(option, config)
                                                        : compared_value(option, config)});
  return agreement;
}

Agreement same_paths(const TrainConfig& config) {
  Agreement agreement{.mine = {}, .advice = always("rank 0 reads the file for all ranks"), .is_required = false};
  for (const std::string_view name : kReadByRank0)
    agreement.mine.values.push_back({std::string(name), find_option(name)->show(config)});
  return agreement;
}

Agreement same_cpu_level(const std::string& level) {
  return {.mine = {.values = {{"the CPU level", level}}}, .advice = [](const std::string& a, const std::string& b) {
            const auto& [lower, higher] = std::minmax(a, b);
            return fmt::format("they round differently: {} on all ranks", advice_for_cpu_level(lower, higher));
          }};
}

std::vector<Agreement> same_data(const TrainConfig& config, const Datasets& sets, const DataHashes& hashes) {
  const std::string folder =
      config.data_dir.empty() ? std::string() : std::filesystem::absolute(config.data_dir).lexically_normal().string();
  Agreement sizes{
      .mine = {.values = {}, .where = folder},
      .advice = always("give every rank the same files with --data-dir: in a shared folder, or as copies of one")};
  Agreement contents = sizes;
  for (const auto& [name, set] :
       {NamedSet{"training", sets.train_set.get()}, NamedSet{"validation", sets.validation_set.get()},
        NamedSet{"test", sets.test_set.get()}}) {
    if (!set) continue;
    sizes.mine.values.push_back({fmt::format("the size of the {} set", name), fmt::format("{} samples", set->size())});
  }
  for (const auto& [name, hash] : hashes)
    contents.mine.values.push_back({fmt::format("the SHA-256 of the {} set's samples", name), hash.substr(0, kDigits)});
  if (config.dataset == data::kFolder)  // whose files are hashed, not their pixels
    contents.mine.values.push_back({"the decoders of images", data::decoder_versions()});
  return {std::move(sizes), std::move(contents)};
}

void check_no_later_checkpoint(comm::ProcessGroup& group, std::int64_t newest, const std::filesystem::path& run_dir) {
  const std::vector<std::byte> bytes = group.all_gather_on_host(std::as_bytes(std::span(&newest, 1)));
  std::vector<std::int64_t> steps(static_cast<std::size_t>(group.world_size()));
  std::memcpy(steps.data(), bytes.data(), bytes.size());
  const auto later = std::ranges::find_if(steps, [&](std::int64_t step) { return step > steps.front(); });
  if (later == steps.end()) return;
  const auto ranks = gather_facts(group, {.rank = group.rank(),
                                          .host = host_name(),
                                          .sections = {{.values = {{"the newest checkpoint", step_text(newest)}},
                                                        .where = std::filesystem::absolute(run_dir).string()}}});
  const RankFacts compared[] = {ranks.front(), ranks[static_cast<std::size_t>(later - steps.begin())]};
  throw_disagreement(describe_differences(
      compared, 0,
      always(
          "rank 0 resumes for all ranks, and would lose what was trained since: put --run-dir into a folder that all "
          "nodes share, or copy the later one to the node of rank 0")));
}

}  // namespace gradring::train
