// SPDX-License-Identifier: Apache-2.0
#include "train/report/outcome.h"

#include <nlohmann/json.hpp>

namespace gradring::train {

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::finished: return "finished";
    case Outcome::interrupted: return "interrupted";
    case Outcome::diverged: return "diverged";
    case Outcome::failed: break;
  }
  return "failed";
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
