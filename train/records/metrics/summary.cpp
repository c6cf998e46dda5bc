// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/summary.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "train/records/metrics/event_reader.h"

namespace gradring::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 4> kOutcomes = {"finished", "interrupted", "diverged", "failed"};

/// Calls visit(name, member) for the members of any run after its steps.
template <class Run, class Visit>
void visit_rest(Run& run, Visit& visit) {
  visit("seconds", run.seconds);
  visit("samples_per_second", run.samples_per_second);
  visit("world_size", run.world_size);
  visit("device", run.device);
  visit("backend", run.backend);
  visit("precision", run.precision);
}

/// The same for all members that are plain values.
template <class S, class Visit>
void visit_members(S& summary, Visit visit) {
  visit("accuracy", summary.accuracy);
  visit("loss", summary.loss);
  visit("train_loss", summary.train_loss);
  visit("steps", summary.steps);
  visit_rest(summary, visit);
  visit("parameters_sha256", summary.parameters_sha256);
}

/// The same for a run that did not finish; its outcome is read and written by the callers.
template <class S, class Visit>
void visit_unfinished(S& run, Visit visit) {
  visit("reason", run.reason);
  visit("steps", run.steps);
  visit("epoch", run.epoch);
  visit_rest(run, visit);
}

/// The same for those that a run may lack.
template <class S, class Visit>
void visit_optional(S& summary, Visit visit) {
  visit("top5_accuracy", summary.top5_accuracy);
  visit("ema_accuracy", summary.ema_accuracy);
  visit("tta_accuracy", summary.tta_accuracy);
  visit("ema_tta_accuracy", summary.ema_tta_accuracy);
  visit("validation_accuracy", summary.validation_accuracy);
  visit("validation_loss", summary.validation_loss);
}

/// Visits the members that are lists of classes.
template <class S, class Visit>
void visit_classes(S& summary, Visit visit) {
  visit("classes", summary.classes);
  visit("validation_classes", summary.validation_classes);
}

Json memory_json(const MemoryTable& planned, const MemoryTable& peak) {
  const auto row = [](std::size_t planned_bytes, std::size_t peak_bytes) {
    return Json{{"planned_bytes", planned_bytes}, {"peak_bytes", peak_bytes}};
  };
  Json rows;
  for (const MemoryClass each : all_memory_classes()) rows[std::string(name_of(each))] = row(planned[each], peak[each]);
  rows["total"] = row(planned.total(), peak.total());
  return rows;
}

ClassResult class_in(const Json& row) {
  ClassResult of{.name = row.at("class").get<std::string>(), .samples = row.at("samples").get<std::int64_t>()};
  if (row.contains("precision")) of.precision = row.at("precision").get<double>();
  if (row.contains("recall")) of.recall = row.at("recall").get<double>();
  return of;
}

}  // namespace

std::string_view name_of(Outcome outcome) { return kOutcomes[static_cast<std::size_t>(outcome)]; }

std::optional<Outcome> outcome_named(std::string_view name) {
  const auto found = std::ranges::find(kOutcomes, name);
  return found == kOutcomes.end() ? std::nullopt : std::optional(static_cast<Outcome>(found - kOutcomes.begin()));
}

Json to_json(const std::vector<ClassResult>& classes) {
  Json rows = Json::array();
  for (const ClassResult& of : classes) {
    Json& row = rows.emplace_back(Json{{"class", of.name}, {"samples", of.samples}});
    if (of.precision) row["precision"] = *of.precision;
    if (of.recall) row["recall"] = *of.recall;
  }
  return rows;
}

std::string Summary::to_json() const {
  Json json{{"outcome", name_of(Outcome::finished)}};
  visit_members(*this, [&](const char* name, const auto& value) { json[name] = value; });
  json["memory"] = memory_json(planned_memory, peak_memory);
  visit_optional(*this, [&](const char* name, const auto& value) {
    if (value) json[name] = *value;
  });
  visit_classes(*this, [&](const char* name, const auto& value) {
    if (!value.empty()) json[name] = train::to_json(value);
  });
  if (further_device_bytes > 0) json["further_device_bytes"] = further_device_bytes;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<Summary> Summary::from_json(std::string_view text) try {
  std::string problem;
  const Json json = parse_bounded(text, problem).value_or(Json());
  if (json.at("outcome") != name_of(Outcome::finished)) return std::nullopt;
  Summary summary;
  visit_members(summary, [&](const char* name, auto& value) {
    const Json& found = json.at(name);
    if constexpr (std::is_same_v<decltype(value), double&>)
      value = found.is_null() ? std::numeric_limits<double>::quiet_NaN() : found.get<double>();
    else
      found.get_to(value);
  });
  visit_optional(summary, [&](const char* name, auto& value) {
    if (json.contains(name)) value = json.at(name).template get<double>();
  });
  summary.further_device_bytes = json.value("further_device_bytes", std::size_t{0});
  visit_classes(summary, [&](const char* name, auto& value) {
    if (!json.contains(name)) return;
    for (const Json& row : json.at(name)) value.push_back(class_in(row));
  });
  for (const MemoryClass each : all_memory_classes()) {
    const Json& row = json.at("memory").at(std::string(name_of(each)));
    row.at("planned_bytes").get_to(summary.planned_memory[each]);
    row.at("peak_bytes").get_to(summary.peak_memory[each]);
  }
  return summary;
} catch (const Json::exception&) {
  return std::nullopt;
}

std::string UnfinishedRun::to_json() const {
  Json json{{"outcome", name_of(outcome)}};
  visit_unfinished(*this, [&](const char* name, const auto& value) { json[name] = value; });
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<UnfinishedRun> UnfinishedRun::from_json(std::string_view text) try {
  std::string problem;
  const Json json = parse_bounded(text, problem).value_or(Json());
  const auto outcome = outcome_named(json.at("outcome").get<std::string>());
  if (!outcome || *outcome == Outcome::finished) return std::nullopt;
  UnfinishedRun run{.outcome = *outcome};
  visit_unfinished(run, [&](const char* name, auto& value) { json.at(name).get_to(value); });
  return run;
} catch (const Json::exception&) {
  return std::nullopt;
}

}  // namespace gradring::train
