// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/cudart/drop_in/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "kernels/simulated_gpu/counters/counters_table.h"

namespace gradring::simulated_gpu {

std::vector<const LaunchCounts*> counted_launches(std::span<const CountedWork> work, const std::string& kernel) {
  const std::regex pattern(kernel);
  std::vector<const LaunchCounts*> launches;
  for (const CountedWork& one : work)
    if (one.launch && (kernel.empty() || std::regex_search(one.launch->kernel, pattern)))
      launches.push_back(&*one.launch);
  return launches;
}

std::string counters_text(std::span<const LaunchCounts* const> launches) {
  struct Row {
    std::string text;
    std::size_t launches = 0;
  };
  std::vector<Row> rows;
  for (const LaunchCounts* launch : launches) {
    std::string text = counters_row(*launch);
    const auto known = std::ranges::find(rows, text, &Row::text);
    if (known == rows.end())
      rows.push_back({std::move(text), 1});
    else
      ++known->launches;
  }
  std::string all = counters_header() + "\n";
  for (const Row& row : rows)
    all += row.text + (row.launches > 1 ? "  (" + std::to_string(row.launches) + " launches)" : "") + "\n";
  return all + costly_lines(merged_lines(launches));
}

std::string report_json(const FindingLog& findings, std::span<const LaunchCounts* const> launches) {
  nlohmann::json report = nlohmann::json::parse(findings.json());
  report["launches"] = nlohmann::json::array();
  for (const LaunchCounts* launch : launches) report["launches"].push_back(to_json(*launch));
  return report.dump(1);
}

}  // namespace gradring::simulated_gpu
