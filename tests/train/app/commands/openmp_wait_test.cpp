// SPDX-License-Identifier: Apache-2.0
// How OpenMP's threads wait for each other: passively, unless the environment says otherwise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "nn/backend/cpu/onednn.h"
#include "tests/train/app/commands/support/workplace.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using tests::Words;
using tests::Workplace;

class OpenmpWait : public testing::Test {
 protected:
  void SetUp() override {
    if (!nn::has_onednn()) GTEST_SKIP() << "this build has no oneDNN, and so no OpenMP";
    for (const char* variable : nn::kOpenmpWaitVariables) ::unsetenv(variable);
  }

  /// What libgomp is told in each execution of the program: how often a thread looks before it sleeps.
  std::vector<std::string> spin_counts(const Words& words, Workplace::Variables variables = {}) const {
    variables.emplace_back("OMP_DISPLAY_ENV", "VERBOSE");
    const auto end = place_.run(words, variables);
    EXPECT_EQ(end.code, 0) << end.err;
    static const std::regex line("GOMP_SPINCOUNT = '([0-9]+)'");
    std::vector<std::string> counts;
    for (std::sregex_iterator found(end.err.begin(), end.err.end(), line), none; found != none; ++found)
      counts.push_back((*found)[1]);
    return counts;
  }
  bool has_libgomp() const { return !spin_counts({"launch", "--help"}).empty(); }

  const Workplace place_;
};

TEST_F(OpenmpWait, IsPassiveByDefault) {
  if (!has_libgomp()) GTEST_SKIP() << "the OpenMP of this build is not libgomp, which says how it waits";
  EXPECT_EQ(spin_counts({"version"}).back(), "0");
  EXPECT_EQ(spin_counts(tests::short_training()).back(), "0");
  const Words ranks = tests::launched(tests::short_training({"--run-dir", "two"}));
  EXPECT_EQ(std::ranges::count(spin_counts(ranks), "0"), 2) << "one for each rank";
}

TEST_F(OpenmpWait, IsWhatTheUsersEnvironmentSays) {
  if (!has_libgomp()) GTEST_SKIP() << "the OpenMP of this build is not libgomp, which says how it waits";
  EXPECT_THAT(spin_counts({"version"}, {{"GOMP_SPINCOUNT", "77"}}), ElementsAre("77"));
  EXPECT_THAT(spin_counts({"version"}, {{"OMP_WAIT_POLICY", "active"}}), ElementsAre(Not("0")));
}

TEST_F(OpenmpWait, IsNotPassedOnToOtherPrograms) {
  const auto python = place_.path("python3");
  std::ofstream(python) << "#!/bin/sh\nexport -p >variables\n";
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  EXPECT_EQ(place_.run({"doctor"}, {{"PATH", "/nowhere"}, {"GRADRING_PYTHON", python.string()}}).code, 0);
  const std::string variables = tests::text_of(place_.path("variables"));
  EXPECT_THAT(variables, HasSubstr("GRADRING_PYTHON"));
  EXPECT_THAT(variables, Not(HasSubstr("OMP_WAIT_POLICY")));
}

TEST_F(OpenmpWait, IsShownByDoctor) {
  EXPECT_THAT(place_.run({"doctor"}, {{"PATH", "/nowhere"}}).out, HasSubstr("OpenMP wait     passively"));
  EXPECT_THAT(place_.run({"doctor"}, {{"PATH", "/nowhere"}, {"OMP_WAIT_POLICY", "active"}}).out,
              HasSubstr("OpenMP wait     OMP_WAIT_POLICY=active"));
}

}  // namespace
}  // namespace gradring
