// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace gradring::data {

/// The command that gets the files of a data set to where open_dataset looks for them, as a shell takes it:
/// "gradring data fetch mnist --data-dir datasets". An empty `data_dir` is the folder that the command has by default.
std::string fetch_command(std::string_view name, const std::filesystem::path& data_dir);

/// What is wrong where a data set of files is asked for without a folder, and what to do.
std::string needs_folder_message(std::string_view name);

}  // namespace gradring::data
