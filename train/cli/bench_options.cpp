// SPDX-License-Identifier: Apache-2.0
#include "train/cli/bench_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "data/datasets/open_dataset.h"
#include "train/config/usage_error.h"
#include "train/launch/worker_environment.h"

namespace gradring::train {
namespace {

void check_folder(std::string_view file) {
  const auto folder = std::filesystem::absolute(file).parent_path();
  std::error_code ignored;
  if (file.empty() || !std::filesystem::is_directory(folder, ignored))
    throw UsageError(fmt::format("--json is '{}', but there is no folder {}", file, folder.string()));
}

}  // namespace

CommandOption text_option(const std::string& name, const std::string& shown, const std::string& help,
                          std::string& value) {
  return {.name = name, .value = shown, .help = help, .read = [&value](std::string_view text) { value = text; }};
}

CommandOption choice_option(const std::string& name, std::span<const std::string_view> words, const std::string& help,
                            std::string& value) {
  return {.name = name,
          .value = fmt::format("{}", fmt::join(words, "|")),
          .help = help,
          .read = [name, words, &value](std::string_view text) { value = parse_word(name, text, words); }};
}

std::vector<CommandOption> dataset_options(std::string& dataset, std::string& data_dir) {
  data_dir = system_variable("GRADRING_DATA_DIR").value_or("");
  return {choice_option("dataset", data::dataset_names(), fmt::format("data set to take samples from [{}]", dataset),
                        dataset),
          text_option("data-dir", "D", "folder of the data set's files [GRADRING_DATA_DIR]", data_dir)};
}

CommandOption json_option(std::string& file) {
  return {.name = "json",
          .letter = 'J',
          .value = "FILE",
          .help = "write the results there, too",
          .read = [&file](std::string_view text) {
            check_folder(text);
            file = text;
          }};
}

}  // namespace gradring::train
