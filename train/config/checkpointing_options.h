// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "nn/program/checkpointing.h"
#include "train/config/options.h"

namespace gradring::train {

/// --checkpoint-activations and --activation-budget-mb, of which TrainConfig::checkpointing is made.
Option checkpoint_activations_option();
Option activation_budget_option();

/// What --help calls the value of --checkpoint-activations.
inline constexpr std::string_view kCheckpointingWords = "none|auto|N";

/// Reads "none", "auto" or a number of segments into `checkpointing`, whose budget stays.
///
/// Errors    UsageError that says what was expected.
void read_checkpointing(std::string_view option, std::string_view text, nn::Checkpointing& checkpointing);
/// The inverse.
std::string show_checkpointing(const nn::Checkpointing& checkpointing);

/// Megabytes of 2^20 bytes, fractions allowed, as bytes; 0 is no budget.
///
/// Errors    UsageError that says what was expected.
std::size_t parse_budget(std::string_view option, std::string_view text);

}  // namespace gradring::train
