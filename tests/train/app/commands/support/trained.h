// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/workplace.h"

namespace gradring::tests {

/// A workplace in which the program has trained on `digits` for a moment: run/checkpoints/step-20 and step-40.
class Trained : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(train("run").code, 0); }

  ProgramEnd train(const std::string& run, const Words& more = {}) const {
    return place_.run(joined({"train", "--dataset", "digits", "--steps", "40", "--save-every-steps", "20",
                              "--keep-last", "0", "--progress", "none", "--device", "cpu", "--run-dir", run},
                             more));
  }

  /// What a command prints with --json, whatever its exit code is.
  nlohmann::json json_of(Words words) const {
    words.emplace_back("--json");
    return tests::parse_json(place_.run(words).out);
  }

  Workplace place_;
};

}  // namespace gradring::tests
