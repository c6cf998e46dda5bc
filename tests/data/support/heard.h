// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "data/fetch/fetch.h"

namespace gradring::tests {

/// Writes down what a fetch says.
class Heard final : public data::FetchListener {
 public:
  void already_there(std::string_view file) override { there.emplace_back(file); }
  void asking(std::string_view, std::string_view, std::uint64_t begin) override { begins.push_back(begin); }
  void arrived(std::uint64_t bytes, std::uint64_t of_bytes) override {
    most_arrived = bytes;
    of = of_bytes;
  }
  void failed(std::string_view url, std::string_view why) override {
    failures.push_back(std::string(url) + ": " + std::string(why));
  }
  void done(std::string_view file) override { finished.emplace_back(file); }

  std::vector<std::string> there, failures, finished;
  std::vector<std::uint64_t> begins;  ///< where each request began
  std::uint64_t most_arrived = 0, of = 0;
};

}  // namespace gradring::tests
