// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "kernels/runtime/shape.h"

namespace gradring::train {

/// The key of Checkpoint::about for the shape of a sample: [height, width, channels].
inline constexpr const char* kSampleShape = "sample_shape";

/// The shape as a checkpoint holds it.
nlohmann::ordered_json to_json(const kernels::Shape& shape);

/// Compares the samples that a model was trained on to those that it is given here. The shapes of its parameters do not tell:
/// pooling makes samples of several sizes equal.
///
/// Errors    CheckpointError with `from` if both are known and differ.
void check_sample_shape(const nlohmann::ordered_json& about, const kernels::Shape& here,
                        const std::filesystem::path& from);

}  // namespace gradring::train
