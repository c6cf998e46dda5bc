// SPDX-License-Identifier: Apache-2.0
// Whether a checkpoint fits the run that resumes from it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "data/datasets/dataset.h"
#include "data/loader/sampler.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/shape.h"
#include "train/checkpoint/json_value.h"
#include "train/trainer/training_progress.h"

namespace gradring::train {

/// The key of Checkpoint::about for the shape of a sample: [height, width, channels].
inline constexpr const char* kSampleShape = "sample_shape";

/// The shape as a checkpoint holds it.
nlohmann::ordered_json to_json(const kernels::Shape& shape);

/// Compares the samples that a model was trained on with those of this run. The shapes of its parameters do not tell:
/// pooling makes samples of several sizes equal.
///
/// Errors    CheckpointError with `from` if both are known and differ.
void check_sample_shape(const nlohmann::ordered_json& about, const kernels::Shape& here,
                        const std::filesystem::path& from);

/// What determines the order of samples, as a checkpoint holds it.
JsonValue order_of_samples(const data::Dataset& train_set, std::uint64_t seed);

/// The position of a checkpoint, and the order of samples in this run.
struct OrderCheck {
  const TrainingProgress& progress;
  const JsonValue& saved;
  const JsonValue& here;
  const data::StepSampler& sampler;
  std::int64_t samples_of_step = 0;
  const std::filesystem::path& from;
};

/// Checks that an epoch can continue with the samples that were not seen yet.
///
/// Errors    UsageError: what differs, and what to do.
void check_order(const OrderCheck& check);

/// The key of Checkpoint::about for recorded_cpu_level.
inline constexpr const char* kCpuLevel = "cpu_level";

/// What determines a CPU's rounding: the level of the instruction set ("x86-64-v3"; levels from v3 on have fused
/// multiply-adds), and oneDNN's limit where the user set one ("x86-64-v3, ONEDNN_MAX_CPU_ISA=SSE41"). Empty for a GPU.
std::string recorded_cpu_level(const kernels::Device& device);

/// How to select level `wanted` on a machine that uses `here`: "set GRADRING_CPU_LEVEL=x86-64-v2" where this build has
/// that level, "unset ..." where only oneDNN's limit differs.
std::string advice_for_cpu_level(const std::string& wanted, const std::string& here);

/// Compares the level that a checkpoint was saved with to that of this run, for reproducible runs.
///
/// Errors    UsageError if both are known and differ: how to select the checkpoint's level.
void check_cpu_level(const nlohmann::ordered_json& about, const kernels::Device& device,
                     const std::filesystem::path& from);

}  // namespace gradring::train
