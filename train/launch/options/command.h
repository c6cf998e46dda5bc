// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "train/launch/options/option.h"

namespace gradring::train {

/// Reads the words behind the options: which program is to run, with which arguments.
///
/// Errors    InvalidArgument: no words; --module together with --no-python; a first word that names nothing known.
void read_command(std::span<const std::string> words, LaunchDraft& draft, const LaunchWorld& world);

}  // namespace gradring::train
