// SPDX-License-Identifier: Apache-2.0
#include "train/report/json_lines.h"

#include <nlohmann/json.hpp>

namespace gradring::train {

using Json = nlohmann::ordered_json;

void JsonLinesSink::step(const StepRecord& record) {
  const double seconds = record.duration.count();
  Json line{{"event", "step"},
            {"step", record.step},
            {"epoch", record.epoch},
            {"loss", record.loss},
            {"lr", record.learning_rate},
            {"samples", record.samples},
            {"samples_per_second", seconds > 0 ? static_cast<double>(record.samples) / seconds : 0.0},
            {"seconds", seconds},
            {"data_wait", record.data_wait.count()},
            {"exposed_communication", record.exposed_communication.count()},
            {"loss_scale", record.loss_scale},
            {"skipped", record.skipped}};
  if (record.gradient_norm) line["gradient_norm"] = *record.gradient_norm;
  file_.append(line.dump());
}

void JsonLinesSink::eval(const EvalRecord& record) {
  file_.append(Json{{"event", "eval"},
                    {"epoch", record.epoch},
                    {"accuracy", record.accuracy},
                    {"loss", record.loss},
                    {"samples", record.samples}}
                   .dump());
}

}  // namespace gradring::train
