// SPDX-License-Identifier: Apache-2.0
#include "train/config/option_kinds.h"

#include <utility>

namespace gradring::train {

std::string quoted(const std::string& text) {
  std::string literal = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code == 0x7f) {
      literal += fmt::format("\\u{:04x}", code);
      continue;
    }
    if (c == '"' || c == '\\') literal += '\\';
    literal += c;
  }
  return literal + "\"";
}

Option text_option(std::string name, std::string value, std::string help, std::string TrainConfig::*field) {
  return {std::move(name), std::move(value), std::move(help),
          [field](TrainConfig& config, std::string_view given) { config.*field = std::string(given); },
          [field](const TrainConfig& config) { return quoted(config.*field); }};
}

Option on_or_off_option(const std::string& name, std::string help, bool TrainConfig::*field) {
  static constexpr std::string_view kWords[] = {"on", "off"};
  return {name, "on|off", std::move(help),
          [name, field](TrainConfig& config, std::string_view given) {
            config.*field = parse_word(name, given, kWords) == "on";
          },
          [field](const TrainConfig& config) { return quoted(config.*field ? "on" : "off"); }};
}

Option megabytes_option(const std::string& name, std::string help, std::size_t BucketLimits::*field) {
  return {name, "F", std::move(help),
          [name, field](TrainConfig& config, std::string_view given) {
            config.buckets.*field = parse_megabytes(name, given);
          },
          [field](const TrainConfig& config) { return show_megabytes(config.buckets.*field); }};
}

}  // namespace gradring::train
