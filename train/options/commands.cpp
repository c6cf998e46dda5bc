// SPDX-License-Identifier: Apache-2.0
#include "train/options/commands.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/base/file.h"
#include "kernels/base/printable.h"
#include "train/options/environment_variable.h"
#include "train/options/error_report.h"
#include "train/options/exit_code.h"
#include "train/options/help.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

std::string parse_new_file(std::string_view option, std::string_view file) {
  const auto folder = std::filesystem::absolute(file).parent_path();
  std::error_code ignored;
  if (file.empty() || !std::filesystem::is_directory(folder, ignored))
    throw UsageError(fmt::format("--{} is '{}', but there is no folder {}", option, file, folder.string()));
  return std::string(file);
}

}  // namespace

int run_command(const std::function<int(std::string& name, KeptAlive& kept)>& body) {
  std::string name = "gradring";
  KeptAlive kept;
  try {
    return body(name, kept);
  } catch (const std::exception& error) {
    if (is_output_failure(error)) throw;
    const int code = finish_standard_output(exit_code_of(error));  // results precede the error
    // A launcher that reads error files shows the message itself, once, at the end.
    const std::string error_file = system_variable("TORCHELASTIC_ERROR_FILE").value_or("");
    const std::string message = message_of(error);
    if (!write_error_file(error_file, message)) print_to_stderr(fmt::format("{}: {}\n", name, message));
    return code;
  }
}

std::optional<Words> words_or_help(const CommandLine& line, Arguments args) {
  CommandWords words = read_command_line(line, args);
  if (!words.help) return std::move(words.words);
  print_shown(help_of(line));
  return std::nullopt;
}

const std::string& only_word(const Words& words, std::string_view usage) {
  if (words.size() == 1) return words.front();
  throw UsageError(
      fmt::format("expected one {}, found {} arguments: {}", usage.substr(usage.rfind(' ') + 1), words.size(), usage));
}

Option json_file_option(std::string& file) {
  return new_file_option("json-file,J", "FILE", "JSON file for the results", file);
}

Option new_file_option(std::string_view names, const std::string& placeholder, const std::string& help,
                       std::string& file) {
  return value_option(names, placeholder, help, parse_new_file, file);
}

std::string shown_json(const nlohmann::ordered_json& json) {
  return printable_json(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void print_json(const nlohmann::ordered_json& json) { print_text("{}\n", shown_json(json)); }

}  // namespace gradring::train
