// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/sample_shape.h"

#include <nlohmann/json.hpp>

#include "train/checkpoint/error.h"

namespace gradring::train {

nlohmann::ordered_json to_json(const kernels::Shape& shape) {
  const auto extents = shape.extents();
  return std::vector<std::int64_t>(extents.begin(), extents.end());
}

void check_sample_shape(const nlohmann::ordered_json& about, const kernels::Shape& here,
                        const std::filesystem::path& from) {
  const auto saved = about.find(kSampleShape);
  const nlohmann::ordered_json shape = to_json(here);
  if (saved == about.end() || *saved == shape) return;
  const std::string there = saved->dump().substr(0, 40);
  throw CheckpointError(from, "was trained on samples of " + there + ", but the samples here are of " + shape.dump(),
                        "use the data set that it was trained on, or another checkpoint");
}

}  // namespace gradring::train
