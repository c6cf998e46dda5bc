// SPDX-License-Identifier: Apache-2.0
// The closed choices among the settings of a run.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "data/datasets/image_settings.h"
#include "train/options/choice.h"

namespace gradring::comm {
enum class AllReduceAlgorithm : std::uint8_t;  // comm/process_group.h
}

namespace gradring::train {

/// How samples are assigned to ranks.
enum class Sampler : std::uint8_t { automatic, distributed, sharded, balanced };
template <>
inline constexpr auto kWords<Sampler> = std::to_array<std::string_view>({"auto", "distributed", "sharded", "balanced"});

/// Whether the validation set has the training set's shares of classes (TrainConfig::val_split).
enum class Stratify : std::uint8_t { automatic, on, off };
template <>
inline constexpr auto kWords<Stratify> = std::to_array<std::string_view>({"auto", "on", "off"});

using OnBroken = data::OnBroken;
template <>
inline constexpr auto kWords<OnBroken> = std::to_array<std::string_view>({"fail", "skip"});

/// What gradients are averaged over.
enum class GradientMean : std::uint8_t { samples, ranks };
template <>
inline constexpr auto kWords<GradientMean> = std::to_array<std::string_view>({"samples", "ranks"});

/// The response to gradients that are not finite.
enum class OnNan : std::uint8_t {
  automatic,  ///< skip with loss scaling, else halt
  skip,       ///< skip the step
  halt,       ///< end with DivergedError
  roll_back,  ///< resume from the newest checkpoint; overflow of the loss scale is skipped
};
template <>
inline constexpr auto kWords<OnNan> = std::to_array<std::string_view>({"auto", "skip", "halt", "rollback"});

/// The type that layers compute in, or that gradients travel in, which is never automatic.
enum class Precision : std::uint8_t { automatic, fp32, fp16, bf16 };
template <>
inline constexpr auto kWords<Precision> = std::to_array<std::string_view>({"auto", "fp32", "fp16", "bf16"});

/// The implementation of the layers.
enum class BackendKind : std::uint8_t { automatic, reference, cpu, cuda };
template <>
inline constexpr auto kWords<BackendKind> = std::to_array<std::string_view>({"auto", "reference", "cpu", "cuda"});

/// Whether the training set is in device memory.
enum class Resident : std::uint8_t { automatic, on, off };
template <>
inline constexpr auto kWords<Resident> = std::to_array<std::string_view>({"auto", "on", "off"});

/// What connects the ranks.
enum class TransportKind : std::uint8_t { automatic, nccl, shm, tcp };
template <>
inline constexpr auto kWords<TransportKind> = std::to_array<std::string_view>({"auto", "nccl", "shm", "tcp"});

using AllReduce = comm::AllReduceAlgorithm;
template <>
inline constexpr auto kWords<AllReduce> = std::to_array<std::string_view>({"auto", "ring", "direct", "nccl"});

/// Test-time augmentation: the views of an image whose logits are averaged (trainer/test_views.h).
enum class Tta : std::uint8_t { none, flip, airbench };
template <>
inline constexpr auto kWords<Tta> = std::to_array<std::string_view>({"none", "flip", "airbench"});

/// The response to checkpoints that cannot be saved.
enum class OnSaveError : std::uint8_t { stop, proceed };
template <>
inline constexpr auto kWords<OnSaveError> = std::to_array<std::string_view>({"stop", "continue"});

}  // namespace gradring::train
