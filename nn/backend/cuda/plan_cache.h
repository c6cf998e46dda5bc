// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace gradring::nn {

/// What measuring found fastest, kept in a file from run to run:
///
///   {"NVIDIA H200, 139.8 GiB, sm_90; cuDNN 91900": {"forward f16 x 64 28 28 1 ...": "engine 12 knobs 2=1"}}
///
/// A file that is not there, cannot be written, or holds something else is as good as none: what it would have known is
/// measured again.
///
/// Threads   one; processes may share the file, which is replaced as a whole, and one of two written at once may be lost.
class PlanCache {
 public:
  /// `machine` is all that decides besides the key: card and library version. An empty path keeps nothing.
  PlanCache(std::filesystem::path file, std::string machine);

  std::optional<std::string> find(const std::string& key) const;
  void store(const std::string& key, const std::string& name);

 private:
  std::filesystem::path file_;
  std::string machine_;
  std::map<std::string, std::string> plans_;
};

}  // namespace gradring::nn
