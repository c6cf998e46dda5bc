// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gradring::train {

/// Whether an option takes a path, by its placeholder in --help: "DIR", "FILE.md", "auto|none|PATH", "convnet|FILE.toml".
bool takes_path(std::string_view placeholder);

/// A path whose ~ or ~/ at the begin is replaced by HOME. A shell does that only at the begin of a word: not behind =,
/// not in a config file. `source` names the value in the message: "--run-dir", "GRADRING_DATA_DIR".
///
/// Errors    UsageError for ~user, and if HOME is not set.
std::string expand_home(const std::string& source, std::string_view path);

/// The text of a value as the reader of its option takes it: with ~ expanded if the option takes a path.
std::string value_text(const std::string& source, std::string_view placeholder, std::string_view text);

}  // namespace gradring::train
