// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "kernels/runtime/error.h"

namespace gradring::data {

/// A file of a data set is missing, damaged, or not what its name says. The message is "path: found; advice".
class DataError : public Error {
 public:
  DataError(std::filesystem::path path, std::string_view found, std::string_view advice)
      : Error(path.string() + ": " + std::string(found) + "; " + std::string(advice)), path_(std::move(path)) {}

  /// The file or folder that is wrong.
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace gradring::data
