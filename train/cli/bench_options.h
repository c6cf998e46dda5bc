// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/cli/command_line.h"
#include "train/config/parse_value.h"

namespace gradring::train {

/// The options that several benchmarks have, and the kinds of which most are. Each reads into a variable, which must outlive
/// it; `help` names the default.
template <std::integral Integer>
CommandOption count_option(const std::string& name, const std::string& help, std::int64_t least, Integer& value) {
  return {.name = name, .value = "N", .help = help, .read = [=, &value](std::string_view text) {
            value = static_cast<Integer>(parse_integer(name, text, {.least = least}));
          }};
}

/// Any text; `shown` is what --help calls it.
CommandOption text_option(const std::string& name, const std::string& shown, const std::string& help,
                          std::string& value);

/// One of several words, which --help lists; another is refused, with the nearest.
CommandOption choice_option(const std::string& name, std::span<const std::string_view> words, const std::string& help,
                            std::string& value);

/// --dataset and --data-dir. `data_dir` gets its default here: what GRADRING_DATA_DIR says, as for training.
std::vector<CommandOption> dataset_options(std::string& dataset, std::string& data_dir);

/// -J, --json FILE: refused before anything is measured, if there is no folder for it.
CommandOption json_option(std::string& file);

}  // namespace gradring::train
