// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/counters/counters_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace gradring::simulated_gpu {
namespace {

constexpr std::size_t kShownLines = 5;  ///< of each cost
constexpr double kMegabyte = 1e6, kMegaflop = 1e6;
constexpr double kMicroseconds = 1e6;  ///< in a second

double active_lanes(const LaunchCounts& launch) {
  const std::uint64_t instructions = launch.all_warp_instructions();
  return instructions == 0 ? 0 : static_cast<double>(launch.thread_instructions) / static_cast<double>(instructions);
}

std::string sectors(const MemoryCounts& memory) {
  if (memory.requests == 0) return "";
  return fmt::format("{:.1f}/{:.1f}", memory.sectors_per_request(), memory.least_sectors_per_request());
}

std::string wavefronts(const LaunchCounts& launch) {
  if (launch.least_wavefronts == 0) return "";
  return fmt::format("{:.2f}x", static_cast<double>(launch.wavefronts) / static_cast<double>(launch.least_wavefronts));
}

std::string occupancy(const LaunchCounts& launch) {
  const bool has_few_blocks = launch.grid_warps < launch.resident_warps;
  return fmt::format("{} of {} {}", launch.grid_warps, launch.most_warps, has_few_blocks ? "grid" : launch.limiter);
}

/// "memory", "tensor", "issue", or what of a multiprocessor is issued to: "issue: integer".
std::string limit_of(const TimeBound& bound) {
  const std::string limit = bound.limit();
  return limit == "issue" && bound.busiest != limit ? limit + ": " + bound.busiest : limit;
}

/// One way to order lines, and what is shown of them.
struct Cost {
  const char* title;
  const char* name;
  std::uint64_t LineCounts::*count;
};
constexpr Cost kCosts[] = {
    {"lines with most warp instructions", "warp_instructions", &LineCounts::warp_instructions},
    {"lines with most sectors beyond the least", "excess_sectors", &LineCounts::excess_sectors},
    {"lines with most wavefronts beyond the least", "excess_wavefronts", &LineCounts::excess_wavefronts}};

/// The first lines by a cost; none of those that it does not have.
std::vector<const LineCounts*> most_costly(const std::vector<LineCounts>& lines, const Cost& cost) {
  std::vector<const LineCounts*> sorted;
  for (const LineCounts& line : lines)
    if (line.*cost.count > 0) sorted.push_back(&line);
  std::ranges::stable_sort(sorted, std::greater(), [&](const LineCounts* line) { return line->*cost.count; });
  sorted.resize(std::min(sorted.size(), kShownLines));
  return sorted;
}

std::string shortened(const std::string& name, std::size_t width) {
  return name.size() <= width ? name : name.substr(0, width - 3) + "...";
}

void add_memory(nlohmann::json& json, const MemoryCounts& memory, const char* operation) {
  const auto name = [&](const char* form) { return fmt::format(fmt::runtime(form), operation); };
  json[name("l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum")] = memory.requests;
  json[name("l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum")] = memory.sectors;
  json[name("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{}.ratio")] = memory.sectors_per_request();
  json[name("ideal_sectors_per_request_global_{}")] = memory.least_sectors_per_request();
  json[name("requested_bytes_global_{}")] = memory.bytes;
}

nlohmann::json resources_of(const LaunchCounts& launch) {
  nlohmann::json json = {{"launch__shared_mem_per_block_static", launch.static_shared_bytes},
                         {"launch__shared_mem_per_block_dynamic", launch.dynamic_shared_bytes},
                         {"launch__waves_per_multiprocessor", launch.waves},
                         {"resident_warps", launch.resident_warps},
                         {"resident_warps_of_grid", launch.grid_warps},
                         {"sm__maximum_warps_per_active_cycle_pct",
                          launch.most_warps > 0 ? 100.0 * launch.resident_warps / launch.most_warps : 0},
                         {"occupancy_limiter", launch.limiter}};
  for (const auto& [limit, blocks] : launch.blocks_by_limit)
    json["launch__occupancy_limit_" + (limit == "shared memory" ? "shared_mem" : limit)] = blocks;
  if (launch.resources) {
    json["launch__registers_per_thread"] = launch.resources->registers;
    json["stack_bytes_per_thread"] = launch.resources->stack_bytes;
    json["spill_store_bytes"] = launch.resources->spill_store_bytes;
    json["spill_load_bytes"] = launch.resources->spill_load_bytes;
  }
  return json;
}

nlohmann::json bound_of(const TimeBound& bound) {
  return {{"microseconds", bound.microseconds()},
          {"limit", bound.limit()},
          {"issue_cycles", bound.issue_cycles},
          {"busiest", bound.busiest},
          {"issue_microseconds", bound.issue_seconds * kMicroseconds},
          {"memory_microseconds", bound.memory_seconds * kMicroseconds},
          {"tensor_microseconds", bound.tensor_seconds * kMicroseconds},
          {"l2_microseconds", bound.l2_seconds * kMicroseconds}};
}

}  // namespace

std::string counters_header() {
  return fmt::format(
      "  {:<38} {:>7} {:>10} {:>10} {:>5} {:>21} {:>17} {:>7} {:>8} {:>8} {:>4} {:>5}  {:<20} {:>8}\n"
      "  {:<38} {:>7} {:>10} {:>10} {:>5} {:>10} {:>10} {:>8} {:>8} {:>7} {:>8} {:>8} {:>4} {:>5}  {:<20} {:>8} {}",
      "", "", "warp", "machine", "", "sectors/ideal", "MB of DRAM", "wave-", "", "tensor", "reg-", "spill",
      "resident warps", "bound", "kernel", "blocks", "instruct.", "instruct.", "lanes", "load", "store", "read",
      "written", "fronts", "barriers", "MFLOP", "ist.", "bytes", "and their limit", "us", "by");
}

std::string counters_row(const LaunchCounts& launch) {
  const auto or_blank = [](bool is_there, const std::string& text) { return is_there ? text : std::string(); };
  const bool has_code = launch.resources.has_value();
  return fmt::format(
      "  {:<38} {:>7} {:>10} {:>10} {:>5.1f} {:>10} {:>10} {:>8.3f} {:>8.3f} {:>7} {:>8} {:>8} {:>4} {:>5}  {:<20} "
      "{:>8.2f} {}",
      shortened(launch.kernel, 38), launch.blocks, launch.all_warp_instructions(),
      launch.all_machine_instructions() > 0 ? fmt::format("{:.0f}", launch.all_machine_instructions()) : "?",
      active_lanes(launch), sectors(launch.loads), sectors(launch.stores),
      static_cast<double>(launch.distinct_read_bytes) / kMegabyte,
      static_cast<double>(launch.distinct_written_bytes) / kMegabyte, wavefronts(launch),
      or_blank(launch.barriers > 0, std::to_string(launch.barriers)),
      or_blank(launch.tensor_flops > 0, fmt::format("{:.1f}", static_cast<double>(launch.tensor_flops) / kMegaflop)),
      has_code ? std::to_string(launch.resources->registers) : "?",
      has_code ? std::to_string(launch.resources->spill_store_bytes + launch.resources->spill_load_bytes) : "?",
      occupancy(launch), launch.bound.microseconds(), limit_of(launch.bound));
}

std::string instruction_mix(const LaunchCounts& launch) {
  std::vector<std::pair<std::uint64_t, std::string_view>> classes;
  for (std::size_t i = 0; i < kInstructionClasses; ++i)
    if (launch.warp_instructions[i] > 0) classes.emplace_back(launch.warp_instructions[i], kInstructionClassNames[i]);
  std::ranges::stable_sort(classes, std::greater(), [](const auto& each) { return each.first; });
  const auto all = static_cast<double>(launch.all_warp_instructions());
  std::vector<std::string> words;
  for (const auto& [count, name] : classes)
    words.push_back(fmt::format("{} {:.1f} %", name, 100 * static_cast<double>(count) / all));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::vector<LineCounts> merged_lines(std::span<const LaunchCounts* const> launches) {
  std::map<std::pair<std::string, unsigned>, LineCounts> sums;
  for (const LaunchCounts* launch : launches)
    for (const LineCounts& line : launch->lines) {
      LineCounts& sum = sums[{line.file, line.line}];
      sum.file = line.file;
      sum.line = line.line;
      for (const auto count : {&LineCounts::warp_instructions, &LineCounts::machine_instructions, &LineCounts::sectors,
                               &LineCounts::excess_sectors, &LineCounts::wavefronts, &LineCounts::excess_wavefronts})
        sum.*count += line.*count;
    }
  std::vector<LineCounts> lines;
  for (auto& [key, sum] : sums) lines.push_back(std::move(sum));
  return lines;
}

std::string costly_lines(const std::vector<LineCounts>& lines) {
  std::string text;
  for (const Cost& cost : kCosts) {
    const auto shown = most_costly(lines, cost);
    if (shown.empty()) continue;
    text += fmt::format("    {}:\n", cost.title);
    for (const LineCounts* line : shown)
      text += fmt::format("      {:>12}  {}:{}\n", line->*cost.count, line->file, line->line);
  }
  return text;
}

nlohmann::json costly_lines_json(const std::vector<LineCounts>& lines) {
  std::set<std::pair<std::string, unsigned>> known;
  nlohmann::json json = nlohmann::json::array();
  for (const Cost& cost : kCosts)
    for (const LineCounts* line : most_costly(lines, cost)) {
      if (!known.emplace(line->file, line->line).second) continue;
      nlohmann::json row = {{"file", line->file}, {"line", line->line}};
      for (const Cost& each : kCosts) row[each.name] = line->*each.count;
      json.push_back(std::move(row));
    }
  return json;
}

nlohmann::json to_json(const LaunchCounts& launch) {
  nlohmann::json metrics = {
      {"smsp__inst_executed.sum", launch.all_warp_instructions()},
      {"smsp__thread_inst_executed_pred_on.sum", launch.thread_instructions},
      {"smsp__thread_inst_executed_pred_on_per_inst_executed.ratio", active_lanes(launch)},
      {"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", launch.wavefronts},
      {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", launch.wavefronts - launch.least_wavefronts},
      {"requests_shared", launch.shared_requests},
      {"ideal_wavefronts_shared", launch.least_wavefronts},
      {"requests_global_atomic", launch.atomics.requests},
      {"sectors_global_atomic", launch.atomics.sectors},
      {"tensor_copy_bytes", launch.tensor_copy_bytes},
      {"distinct_bytes_read", launch.distinct_read_bytes},
      {"distinct_bytes_written", launch.distinct_written_bytes},
      {"barriers", launch.barriers},
      {"tensor_flops", launch.tensor_flops}};
  add_memory(metrics, launch.loads, "ld");
  add_memory(metrics, launch.stores, "st");
  metrics.update(resources_of(launch));
  nlohmann::json classes = nlohmann::json::object();
  for (std::size_t i = 0; i < kInstructionClasses; ++i)
    if (launch.warp_instructions[i] > 0) classes[std::string(kInstructionClassNames[i])] = launch.warp_instructions[i];
  nlohmann::json pipes = nlohmann::json::object();
  for (std::size_t i = 0; i < kPipes; ++i)
    if (launch.machine_instructions[i] > 0)
      pipes[std::string(kPipeNames[i])] = std::round(launch.machine_instructions[i]);
  return {{"kernel", launch.kernel},
          {"grid", launch.grid},
          {"block", launch.block},
          {"warp_instructions", launch.all_warp_instructions()},
          {"warp_instructions_by_class", classes},
          {"metrics", metrics},
          {"machine_instructions_by_pipe", pipes},
          {"bound", bound_of(launch.bound)},
          {"lines", costly_lines_json(launch.lines)}};
}

}  // namespace gradring::simulated_gpu
