// SPDX-License-Identifier: Apache-2.0
#include "train/report/summary.h"

#include <nlohmann/json.hpp>

namespace gradring::train {

std::string Summary::to_json() const {
  return nlohmann::ordered_json{{"accuracy", accuracy},
                                {"loss", loss},
                                {"train_loss", train_loss},
                                {"steps", steps},
                                {"seconds", seconds},
                                {"samples_per_second", samples_per_second},
                                {"world_size", world_size},
                                {"device", device},
                                {"backend", backend},
                                {"precision", precision},
                                {"parameters_sha256", parameters_sha256}}
             .dump(2) +
         "\n";
}

}  // namespace gradring::train
