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

std::string Summary::to_json() const {
  nlohmann::ordered_json json{{"accuracy", accuracy},
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

}  // namespace gradring::train
