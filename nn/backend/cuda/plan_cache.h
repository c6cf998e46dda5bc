// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace gradring::nn {

/// The fastest of what was measured, kept in a file across runs:
///
///   {"NVIDIA H200, 139.8 GiB, sm_90; cuDNN 91900": {"forward f16 x 64 28 28 1 ...": "engine 12 knobs 2=1"}}
///
/// A missing, unwritable or invalid file is ignored: all is measured again.
///
/// Threads   one; processes may share the file. It is replaced as a whole, so one of two concurrent writes may be lost.
class PlanCache {
 public:
  /// `machine` identifies the card and what runs on it: the version of a library, or of driver and program. With an
  /// empty path nothing is kept.
  PlanCache(std::filesystem::path file, std::string machine);

  std::optional<std::string> find(const std::string& key) const;
  void store(const std::string& key, const std::string& name);

 private:
  std::filesystem::path file_;
  std::string machine_;
  std::map<std::string, std::string> plans_;
};

}  // namespace gradring::nn
