// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/rank_agreements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "data/datasets/content_hash.h"
#include "kernels/base/host_name.h"
#include "train/core/config/options.h"
#include "train/core/trainer/training_state.h"

namespace gradring::train {
namespace {

/// Each rank's own, or compared by same_data.
constexpr std::string_view kOfEachRank[] = {"run-dir", "nprocs", "data-dir"};
constexpr std::string_view kReadByRank0[] = {"weights", "optimizer-state", "resume"};

bool is_among(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// Whether an option names a file, where only rank 0's path counts.
std::string kind_of(const TrainOption& option, const TrainConfig& config) {
  const std::string value = option.show(config);
  const bool is_word =
      value == quoted("") || (option.name == "resume" && (config.resume == "none" || resumes_automatically(config)));
  return is_word ? value : "a path";
}

std::string step_text(std::int64_t step) { return step < 0 ? "missing" : fmt::format("of step {}", step); }

struct NamedSet {
  std::string_view name;
  const data::Dataset* set;
};

}  // namespace

Agreement same_options(const TrainConfig& config) {
  Agreement agreement{
      .mine = {},
      .advice = always(
          "give all ranks the same options: on the command line, in GRADRING_* variables and in the --config file")};
  for (const TrainOption& option : train_options())
    if (!is_among(kOfEachRank, option.name))
      agreement.mine.values.push_back(
          {option.name, is_among(kReadByRank0, option.name) ? kind_of(option, config) : option.show(config)});
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

std::vector<Agreement> same_data(const TrainConfig& config, const Datasets& sets) {
  constexpr std::size_t kDigits = 16;
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
    contents.mine.values.push_back({fmt::format("the SHA-256 of the {} set's samples", name),
                                    data::to_hex(data::content_hash(*set)).substr(0, kDigits)});
  }
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
