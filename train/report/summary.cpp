// SPDX-License-Identifier: Apache-2.0
#include "train/report/summary.h"

#include <nlohmann/json.hpp>

namespace gradring::train {
namespace {

nlohmann::ordered_json side_by_side(const MemoryTable& planned, const MemoryTable& peak) {
  const auto row = [](std::size_t planned_bytes, std::size_t peak_bytes) {
    return nlohmann::ordered_json{{"planned_bytes", planned_bytes}, {"peak_bytes", peak_bytes}};
  };
  nlohmann::ordered_json rows;
  for (const MemoryClass each : all_memory_classes()) rows[std::string(name_of(each))] = row(planned[each], peak[each]);
  rows["total"] = row(planned.total(), peak.total());
  return rows;
}

}  // namespace

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::finished: return "finished";
    case Outcome::interrupted: return "interrupted";
    case Outcome::diverged: return "diverged";
    case Outcome::failed: break;
  }
  return "failed";
}

std::string Summary::to_json() const {
  nlohmann::ordered_json json{{"outcome", name_of(Outcome::finished)},
                              {"accuracy", accuracy},
                              {"loss", loss},
                              {"train_loss", train_loss},
                              {"steps", steps},
                              {"seconds", seconds},
                              {"samples_per_second", samples_per_second},
                              {"world_size", world_size},
                              {"device", device},
                              {"backend", backend},
                              {"precision", precision},
                              {"parameters_sha256", parameters_sha256},
                              {"memory", side_by_side(planned_memory, peak_memory)}};
  if (ema_accuracy) json["ema_accuracy"] = *ema_accuracy;
  return json.dump(2) + "\n";
}

std::optional<Summary> Summary::from_json(std::string_view text) try {
  const auto json = nlohmann::json::parse(text);
  if (json.at("outcome") != name_of(Outcome::finished)) return std::nullopt;
  Summary summary{.accuracy = json.at("accuracy"),
                  .loss = json.at("loss"),
                  .train_loss = json.at("train_loss"),
                  .steps = json.at("steps"),
                  .seconds = json.at("seconds"),
                  .samples_per_second = json.at("samples_per_second"),
                  .world_size = json.at("world_size"),
                  .device = json.at("device"),
                  .backend = json.at("backend"),
                  .precision = json.at("precision"),
                  .parameters_sha256 = json.at("parameters_sha256")};
  if (json.contains("ema_accuracy")) summary.ema_accuracy = json.at("ema_accuracy").get<double>();
  for (const MemoryClass each : all_memory_classes()) {
    const auto& row = json.at("memory").at(std::string(name_of(each)));
    summary.planned_memory[each] = row.at("planned_bytes");
    summary.peak_memory[each] = row.at("peak_bytes");
  }
  return summary;
} catch (const nlohmann::json::exception&) {
  return std::nullopt;
}

std::string UnfinishedRun::to_json() const {
  const nlohmann::ordered_json json{{"outcome", name_of(outcome)},
                                    {"reason", reason},
                                    {"steps", steps},
                                    {"epoch", epoch},
                                    {"seconds", seconds},
                                    {"samples_per_second", samples_per_second},
                                    {"world_size", world_size},
                                    {"device", device},
                                    {"backend", backend},
                                    {"precision", precision}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace gradring::train
