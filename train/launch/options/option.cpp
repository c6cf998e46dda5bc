// SPDX-License-Identifier: Apache-2.0
#include "train/launch/options/option.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "kernels/runtime/error.h"
#include "kernels/runtime/nearest_name.h"

namespace gradring::train {
namespace {

template <class Matches>
const Option* find_option(const Matches& matches) {
  for (const OptionGroup& group : launch_option_groups())
    for (const Option& option : group.options)
      if (matches(option)) return &option;
  return nullptr;
}

std::string with_dashes(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

std::string variable_of(const Option& option) {
  std::string name = std::string("PET_") + option.name;
  for (char& letter : name) letter = letter == '-' ? '_' : static_cast<char>(std::toupper(letter));
  return name;
}

void read(const Option& option, LaunchDraft& draft, const std::string& shown, const std::string& value) try {
  option.read(draft, value);
} catch (const InvalidArgument& error) {
  throw InvalidArgument(fmt::format("{}={}: {}", shown, value, error.what()));
}

/// torchrun reads a flag's variable as a number.
std::string flag_value(const std::string& variable, const std::string& text) {
  if (text != "0" && text != "1") throw InvalidArgument(fmt::format("{}={}: must be 0 or 1", variable, text));
  return text;
}

[[noreturn]] void reject(const std::string& shown) {
  std::vector<std::string_view> known = {"help"};
  for (const OptionGroup& group : launch_option_groups())
    for (const Option& option : group.options) known.push_back(option.name);
  const std::string spelled = with_dashes(shown.substr(std::min(shown.find_first_not_of('-'), shown.size())));
  const std::string_view meant = nearest_name(spelled, known);
  throw InvalidArgument(
      fmt::format("unknown option {}{}{}{}", shown, meant.empty() ? "" : "; the nearest is --", meant, kSeeLaunchHelp));
}

/// One word that begins with a dash, taken apart.
struct OptionWord {
  std::string shown;  ///< "--name", "-n"
  const Option* option = nullptr;
  std::optional<std::string> value{};  ///< if it is attached
};

OptionWord long_word(const std::string& word) {
  const auto sign = word.find('=');
  OptionWord parts{.shown = word.substr(0, sign)};
  const std::string name = with_dashes(parts.shown.substr(2));
  parts.option = find_option([&](const Option& it) { return it.name == name; });
  if (sign != std::string::npos) parts.value = word.substr(sign + 1);
  return parts;
}

OptionWord short_word(const std::string& word) {
  OptionWord parts{.shown = word.substr(0, 2)};
  if (word.size() > 1) parts.option = find_option([&](const Option& it) { return it.letter == word[1]; });
  if (parts.option == nullptr) parts.shown = word;
  if (word.size() > 2) parts.value = word.substr(word[2] == '=' ? 3 : 2);
  return parts;
}

/// Reads the option at words[i] and returns the index after it.
std::size_t read_option(std::span<const std::string> words, std::size_t i, LaunchDraft& draft) {
  const OptionWord word = words[i].starts_with("--") ? long_word(words[i]) : short_word(words[i]);
  if (word.option == nullptr) reject(word.shown);
  if (word.option->value == nullptr) {
    if (word.value) throw InvalidArgument(word.shown + " takes no value");
    read(*word.option, draft, word.shown, "1");
    return i + 1;
  }
  if (word.value) {
    read(*word.option, draft, word.shown, *word.value);
    return i + 1;
  }
  if (i + 1 == words.size() || words[i + 1].starts_with("--"))
    throw InvalidArgument(fmt::format("{} needs a value: {} {}", word.shown, word.shown, word.option->value));
  read(*word.option, draft, word.shown, words[i + 1]);
  return i + 2;
}

}  // namespace

std::span<const OptionGroup> launch_option_groups() {
  static const OptionGroup kGroups[] = {{"Workers", worker_options()},
                                        {"When they end", watch_options()},
                                        {"Their output", log_options()},
                                        {"How they find each other", rendezvous_options()}};
  return kGroups;
}

std::size_t read_options(std::span<const std::string> words, LaunchDraft& draft, bool& help) {
  std::size_t i = 0;
  while (i < words.size() && words[i].starts_with("-") && words[i] != "--") {
    help = words[i] == "--help" || words[i] == "-h";
    if (help) return i;
    i = read_option(words, i, draft);
  }
  return i;
}

void read_variables(const VariableLookup& lookup, LaunchDraft& draft) {
  for (const OptionGroup& group : launch_option_groups())
    for (const Option& option : group.options) {
      const std::string own = variable_of(option);
      const std::string variable = option.variable != nullptr && !lookup(own) ? option.variable : own;
      if (const auto text = lookup(variable))
        read(option, draft, variable, option.value == nullptr ? flag_value(variable, *text) : *text);
    }
}

}  // namespace gradring::train
