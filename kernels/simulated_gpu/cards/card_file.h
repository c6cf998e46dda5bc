// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "kernels/simulated_gpu/cards/card.h"

namespace gradring::simulated_gpu {

/// The card that a text describes. `file`: where it is from, for messages; the card's name.
///
/// Errors    InvalidArgument: the line, what it says, and what is expected.
Card parse_card(const std::string& file, const std::string& text);

/// The files of this folder.
namespace card_text {
extern const char* const t4;
extern const char* const rtx3090;
extern const char* const rtx4090;
extern const char* const a100;
extern const char* const h100;
extern const char* const h200;
}  // namespace card_text

}  // namespace gradring::simulated_gpu
