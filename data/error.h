// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "kernels/runtime/error.h"

namespace gradring::data {

/// Advice for a corrupt download.
inline constexpr const char* kDownloadAgain = "delete the file and download it again";

/// A dataset file is missing, corrupt or not of the expected format. The message is "path: what was found; what to do".
class DataError : public Error, public ExitsWith<kBadData> {
 public:
  DataError(std::filesystem::path path, std::string_view found, std::string_view advice)
      : Error(path.string() + ": " + std::string(found) + "; " + std::string(advice)), path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace gradring::data
