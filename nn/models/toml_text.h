// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>

#include "kernels/base/error.h"

namespace gradring::nn {

/// Invalid or too deeply nested TOML. The message is the reason only.
class TomlError : public Error {
 public:
  TomlError(const std::string& reason, std::size_t line) : Error(reason), line_(line) {}

  /// Counted from 1.
  std::size_t line() const { return line_; }

 private:
  std::size_t line_;
};

/// Parses text of unknown origin: a config file, the settings in a checkpoint, a model.
///
/// Errors    TomlError. Deep nesting is rejected, since the parser's tables are destroyed recursively.
toml::table parse_toml(std::string_view text);

}  // namespace gradring::nn
