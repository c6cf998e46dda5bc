// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "train/core/config/option_sources.h"

namespace gradring::train {

/// The files train/core/config/presets/*.toml, by gradring_embed.
extern const char *const kMnist996Text, *const kFashion93Text, *const kCifar1094Text;

/// The word of --preset that lists them.
inline constexpr std::string_view kListPresets = "ls";

/// The names of the presets: of these files.
std::span<const std::string_view> preset_names();

/// A preset as a config file, with what is known about it as comments.
///
/// Errors    UsageError for another name: suggests the nearest.
std::string_view preset_text(std::string_view name);

/// The options that it sets; their source is "preset cifar10-94:7".
///
/// Errors    as preset_text and read_config_text.
GivenOptions preset_options(std::string_view name);

/// For people: the name of each preset, and the comments with which its file begins.
std::string list_of_presets();

}  // namespace gradring::train
