// SPDX-License-Identifier: Apache-2.0
#include "train/bench/result_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/files/byte_source.h"
#include "kernels/base/file.h"
#include "kernels/bench/statistics.h"

namespace gradring::train::bench {
namespace {

using nlohmann::ordered_json;

constexpr const char* kAdvice = "name a file that `gradring bench ... -J FILE` of this version has written";

std::string whole_text(const std::filesystem::path& path) try {
  constexpr std::size_t kLargest = 64u << 20;
  return read_small_file(path, kLargest);
} catch (const ReadError& error) {
  throw data::DataError(path, error.what(), kAdvice);
}

/// Its text, or nothing where it has another type or is missing.
std::string text_at(const ordered_json& json, const char* pointer) {
  const ordered_json::json_pointer at(pointer);
  return json.contains(at) && json.at(at).is_string() ? json.at(at).get<std::string>() : "";
}

std::optional<double> number_at(const ordered_json& json, const char* pointer) {
  const ordered_json::json_pointer at(pointer);
  return json.contains(at) && json.at(at).is_number() ? std::optional(json.at(at).get<double>()) : std::nullopt;
}

/// Errors    nlohmann's, for what is not a measurement.
BenchMeasurement measurement_of(const ordered_json& json) {
  BenchMeasurement measurement{.key = {}, .unit = json.at("unit").get<std::string>(), .samples = {}};
  for (const auto& [name, value] : json.at("key").items()) measurement.key.emplace_back(name, value.get<std::string>());
  measurement.samples = json.at("samples").get<std::vector<double>>();
  measurement.higher_is_better = json.value("better", "lower") == "higher";
  return measurement;
}

void check_measurements(const BenchResult& result) {
  std::vector<MeasurementKey> keys;
  for (const BenchMeasurement& each : result.measurements) {
    if (each.samples.empty()) throw data::DataError(result.path, "has a measurement without samples", kAdvice);
    keys.push_back(each.key);
  }
  std::ranges::sort(keys);
  if (std::ranges::adjacent_find(keys) != keys.end())
    throw data::DataError(result.path, "has two measurements of one key", kAdvice);
}

}  // namespace

BenchResult read_bench_result(const std::filesystem::path& path) {
  const std::string text = whole_text(path);
  const ordered_json json = ordered_json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object() || !json.contains("benchmark"))
    throw data::DataError(path, "is not a benchmark's result", kAdvice);
  if (const ordered_json schema = json.value("schema", ordered_json()); schema != 1)
    throw data::DataError(path, "has schema " + schema.dump() + ", not 1", kAdvice);
  BenchResult result{.path = path,
                     .benchmark = text_at(json, "/benchmark"),
                     .commit = text_at(json, "/commit"),
                     .date = text_at(json, "/date"),
                     .environment = {{"host", text_at(json, "/host")},
                                     {"machine", text_at(json, "/machine")},
                                     {"CPU level", text_at(json, "/cpu/level")},
                                     {"governor", text_at(json, "/clocks/start/governor")},
                                     {"GPU", text_at(json, "/clocks/start/gpu/name")}},
                     .cpu_mhz = number_at(json, "/clocks/start/cpu_mhz"),
                     .gpu_mhz = number_at(json, "/clocks/start/gpu/sm_mhz"),
                     .warnings = {},
                     .measurements = {},
                     .files = 1};
  try {
    for (const auto& each : json.at("measurements")) result.measurements.push_back(measurement_of(each));
    if (json.contains("warnings")) result.warnings = json.at("warnings").get<std::vector<std::string>>();
  } catch (const ordered_json::exception& error) {
    throw data::DataError(path, std::string("is not a complete result (") + error.what() + ")", kAdvice);
  }
  check_measurements(result);
  return result;
}

BenchResult merged(std::vector<BenchResult> results) {
  BenchResult all = results.front();
  if (results.size() == 1) return all;
  all.files = results.size();
  for (BenchMeasurement& measurement : all.measurements) measurement.samples.clear();
  for (const BenchResult& result : results) {
    if (result.benchmark != all.benchmark)
      throw data::DataError(result.path, "is a result of bench " + result.benchmark + ", not of bench " + all.benchmark,
                            "merge files of one benchmark");
    for (BenchMeasurement& measurement : all.measurements)
      if (const auto same = std::ranges::find(result.measurements, measurement.key, &BenchMeasurement::key);
          same != result.measurements.end())
        measurement.samples.push_back(kernels::bench::statistics_of(same->samples).median);
    for (const std::string& warning : result.warnings)
      if (std::ranges::find(all.warnings, warning) == all.warnings.end()) all.warnings.push_back(warning);
  }
  std::erase_if(all.measurements, [&](const BenchMeasurement& each) { return each.samples.size() < results.size(); });
  return all;
}

}  // namespace gradring::train::bench
