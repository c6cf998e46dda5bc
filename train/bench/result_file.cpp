// SPDX-License-Identifier: Apache-2.0
#include "train/bench/result_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "data/files/byte_source.h"
#include "kernels/base/file.h"
#include "kernels/bench/statistics.h"
#include "train/records/metrics/csv.h"

namespace gradring::train::bench {
namespace {

using nlohmann::ordered_json;

constexpr const char* kStatistics[] = {"unit", "count", "least", "median",       "p95",
                                       "p99",  "most",  "mean",  "noise_percent"};

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
  const std::string better = json.value("better", "lower");
  measurement.better = better == "higher" ? Better::higher : better == "neither" ? Better::neither : Better::lower;
  measurement.is_exact = json.value("exact", false);
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

/// Six digits: more would be noise.
double six_digits(double value) { return std::stod(fmt::format("{:.6g}", value)); }

ordered_json to_json(const MeasurementKey& key) {
  ordered_json json = ordered_json::object();
  for (const auto& [name, value] : key) json[name] = value;
  return json;
}

ordered_json to_json(const BenchMeasurement& measurement) {
  ordered_json json = {{"key", to_json(measurement.key)}, {"unit", measurement.unit}};
  if (measurement.better != Better::lower) json["better"] = measurement.better == Better::higher ? "higher" : "neither";
  if (measurement.is_exact) json["exact"] = true;
  json["samples"] = ordered_json::array();
  for (const double sample : measurement.samples) {
    const bool is_count = measurement.is_exact && sample == std::floor(sample);
    json["samples"].push_back(is_count ? sample : six_digits(sample));
  }
  return json;
}

std::string to_csv(const std::vector<BenchMeasurement>& measurements) {
  const std::vector<std::string> names = key_names(measurements);
  std::vector<std::string> header = names;
  for (const char* name : kStatistics) header.emplace_back(name);
  std::string text = csv_line(header);
  for (const BenchMeasurement& measurement : measurements) {
    std::vector<std::string> fields;
    for (const std::string& name : names) fields.push_back(value_of(measurement.key, name));
    const auto s = kernels::bench::statistics_of(measurement.samples);
    fields.insert(fields.end(), {measurement.unit, std::to_string(s.count)});
    for (const double value : {s.least, s.median, s.p95, s.p99, s.most, s.mean, 100 * s.noise()})
      fields.push_back(fmt::format("{:.6g}", value));
    text += csv_line(fields);
  }
  return text;
}

bool is_result_json(std::string_view head) { return head.starts_with("{\n  \"schema\": 1,\n  \"benchmark\": "); }

bool is_result_csv(std::string_view head) {
  return head.substr(0, head.find('\n')).ends_with(fmt::format("{}", fmt::join(kStatistics, ",")));
}

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
