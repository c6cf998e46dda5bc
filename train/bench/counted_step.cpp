// SPDX-License-Identifier: Apache-2.0
#include "train/bench/counted_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "kernels/simulated_gpu/counters/counters_table.h"
#include "train/bench/counted_launches.h"
#include "train/options/usage_error.h"

namespace gradring::train::bench {
namespace {

using simulated_gpu::CountedWork;
using simulated_gpu::LaunchCounts;

/// In the order of CountedWork::Kind.
constexpr std::string_view kKinds[] = {"kernel", "copy", "clear", "allocation", "host_function"};

std::string_view name_of(CountedWork::Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

bool is_counted(const CountedWork& node) {
  return node.kind == CountedWork::Kind::kernel ? node.launch.has_value()
                                                : node.kind != CountedWork::Kind::host_function;
}

void add(StepTotal::Sum& sum, const CountedWork& node, bool is_excluded) {
  ++sum.nodes;
  if (is_excluded) return;
  sum.bound_seconds += node.bound_seconds;
  if (!node.launch) return;
  sum.warp_instructions += node.launch->all_warp_instructions();
  sum.machine_instructions += node.launch->all_machine_instructions();
}

/// Where the longest way through the graph's launches comes from.
struct Way {
  static constexpr std::size_t kNone = ~std::size_t{0};
  double seconds = 0;
  std::size_t before = kNone;
};

/// The longest way over these nodes, which are in an order in which they could run. Launches of graphs follow each other.
std::vector<std::size_t> longest_way(std::span<const CountedWork> work, const std::vector<bool>& excluded) {
  std::vector<Way> ways(work.size());
  std::size_t last_graph = 0, best = Way::kNone;
  std::size_t best_before = Way::kNone;  // of the launches before this one
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (work[i].graph_launch == 0) continue;
    if (work[i].graph_launch != std::exchange(last_graph, work[i].graph_launch)) best_before = best;
    Way& own = ways[i];
    const auto follow = [&](std::size_t other) {
      if (own.before == Way::kNone || ways[other].seconds > ways[own.before].seconds) own.before = other;
    };
    if (best_before != Way::kNone && work[i].after.empty()) follow(best_before);
    for (const std::size_t other : work[i].after) follow(other);
    own.seconds = (own.before == Way::kNone ? 0 : ways[own.before].seconds) + (excluded[i] ? 0 : work[i].bound_seconds);
    if (best == Way::kNone || own.seconds >= ways[best].seconds) best = i;
  }
  std::vector<std::size_t> way;
  for (std::size_t i = best; i != Way::kNone; i = ways[i].before) way.push_back(i);
  std::ranges::reverse(way);
  return way;
}

void check_names(std::span<const CountedWork> work, std::span<const std::string> excluded) {
  for (const std::string& name : excluded)
    if (std::ranges::find(work, name, &CountedWork::name) == work.end())
      throw UsageError(
          fmt::format("--counters-exclude names '{}', but no node of the step has that name: leave it out", name));
}

nlohmann::json to_json(const StepTotal::Sum& sum) {
  return {{"nodes", sum.nodes},
          {"warp_instructions", sum.warp_instructions},
          {"machine_instructions", std::round(sum.machine_instructions)},
          {"bound_microseconds", sum.bound_seconds * kMicroseconds}};
}

std::vector<const LaunchCounts*> launches_of(std::span<const CountedWork> work) {
  std::vector<const LaunchCounts*> launches;
  for (const CountedWork& each : work)
    if (each.graph_launch > 0 && each.launch) launches.push_back(&*each.launch);
  return launches;
}

}  // namespace

StepTotal total_of(std::span<const CountedWork> work, std::span<const std::string> excluded) {
  check_names(work, excluded);
  StepTotal total;
  std::vector<bool> is_excluded(work.size());
  for (std::size_t i = 0; i < work.size(); ++i) {
    const CountedWork& node = work[i];
    if (node.graph_launch == 0) continue;
    is_excluded[i] = std::ranges::find(excluded, node.name) != excluded.end();
    total.excluded += is_excluded[i] ? 1 : 0;
    if (!is_excluded[i] && !is_counted(node))
      throw UncountedWork(
          fmt::format("the step has no total: node {} of its graph, {} '{}', cannot be counted; to leave it out of the "
                      "total, add --counters-exclude '{}'",
                      total.all.nodes + 1, name_of(node.kind), node.name, node.name));
    add(total.all, node, is_excluded[i]);
  }
  if (total.all.nodes == 0) throw UncountedWork("the step has no total: it launched no graph");
  total.on_path = longest_way(work, is_excluded);
  for (const std::size_t node : total.on_path) add(total.critical_path, work[node], is_excluded[node]);
  return total;
}

std::string step_table(std::span<const CountedWork> work, const StepTotal& total) {
  const std::set<std::size_t> on_path(total.on_path.begin(), total.on_path.end());
  std::string text = simulated_gpu::counters_header() + "\n";
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (work[i].graph_launch == 0) continue;
    std::string row = work[i].launch ? counters_row(*work[i].launch)
                                     : fmt::format("  {:<38} {:>7} bytes", work[i].name, work[i].bytes);
    if (on_path.contains(i)) row[0] = '*';
    text += row + "\n";
  }
  const auto sum = [](const char* title, const StepTotal::Sum& all) {
    return fmt::format(
        "{:<28} {:>4} nodes, {:>12} warp instructions, {:>12.0f} machine instructions, bound {:.1f} us\n", title,
        all.nodes, all.warp_instructions, all.machine_instructions, all.bound_seconds * kMicroseconds);
  };
  text += "\n" + sum("all nodes of the graph", total.all) + sum("critical path, marked by *", total.critical_path);
  if (total.excluded > 0) text += fmt::format("{} nodes are excluded: they count as nothing\n", total.excluded);
  return text + costly_lines(merged_lines(launches_of(work)));
}

std::vector<BenchMeasurement> measurements_of(const MeasurementKey& key, std::span<const CountedWork> work,
                                              const StepTotal& total) {
  const auto add_to = [](std::vector<BenchMeasurement>& all, const std::vector<BenchMeasurement>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  const std::vector<const LaunchCounts*> launches = launches_of(work);
  std::vector<BenchMeasurement> all = counter_measurements(key, launches);
  const auto add = [&](const char* counter, const char* unit, double value) {
    all.push_back({.key = joined(key, {{"counter", counter}}), .unit = unit, .samples = {value}, .is_exact = true});
  };
  add("nodes", "nodes", static_cast<double>(total.all.nodes));
  add("bound of the critical path", "us", total.critical_path.bound_seconds * kMicroseconds);
  std::map<std::string, std::vector<const LaunchCounts*>> by_kernel;
  for (const LaunchCounts* launch : launches) by_kernel[launch->kernel].push_back(launch);
  for (const auto& [kernel, of_kernel] : by_kernel)
    add_to(all, counter_measurements(joined(key, {{"kernel", kernel}}), of_kernel));
  return all;
}

nlohmann::json to_json(std::span<const CountedWork> work, const StepTotal& total) {
  const std::set<std::size_t> on_path(total.on_path.begin(), total.on_path.end());
  nlohmann::json nodes = nlohmann::json::array();
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (work[i].graph_launch == 0) continue;
    nlohmann::json node = {{"name", work[i].name},
                           {"kind", name_of(work[i].kind)},
                           {"bound_microseconds", work[i].bound_seconds * kMicroseconds},
                           {"on_critical_path", on_path.contains(i)}};
    if (work[i].launch) node["launch"] = to_json(*work[i].launch);
    if (work[i].bytes > 0) node["bytes"] = work[i].bytes;
    nodes.push_back(std::move(node));
  }
  nlohmann::json sums = to_json(total.all);
  sums["excluded_nodes"] = total.excluded;
  return {{"total", sums},
          {"critical_path", to_json(total.critical_path)},
          {"nodes", nodes},
          {"lines", costly_lines_json(merged_lines(launches_of(work)))}};
}

}  // namespace gradring::train::bench
