// SPDX-License-Identifier: Apache-2.0
// gradring doctor, as a person calls it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/workplace.h"

namespace gradring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using tests::ProgramEnd;
using tests::Workplace;

/// No Python is looked for, so nothing takes seconds.
const Workplace::Variables kNoPython = {{"PATH", "/nowhere"}};

TEST(Doctor, NamesWhatThereIsAndAdvisesOnWhatIsMissing) {
  const Workplace place;
  const ProgramEnd end = place.run({"doctor"}, kNoPython);
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.err, IsEmpty());
  EXPECT_THAT(end.out, AllOf(HasSubstr("Built in\n"), HasSubstr("Found\n"), HasSubstr("Used\n"), HasSubstr("memfd")));
  EXPECT_THAT(end.out, HasSubstr("install PyTorch"));
  EXPECT_THAT(place.left(), IsEmpty());
}

TEST(Doctor, SaysTheSameToPrograms) {
  const Workplace place;
  const ProgramEnd end = place.run({"doctor", "--json"}, kNoPython);
  EXPECT_EQ(end.code, 0) << end.err;
  const auto json = tests::parse_json(end.out);
  EXPECT_THAT(json.at("Found").at("cores").at("found").get<std::string>(),
              MatchesRegex("[0-9]+ usable of [0-9]+(; CPU .*)?"));
  EXPECT_THAT(json.at("Found").at("PyTorch").at("advice").get<std::string>(), HasSubstr("GRADRING_PYTHON"));
  EXPECT_THAT(json.at("Used").at("device").at("found").get<std::string>(), MatchesRegex("cpu: .*"));
  for (const auto& [title, findings] : json.items())
    for (const auto& [name, finding] : findings.items()) {
      EXPECT_THAT(finding.at("found").get<std::string>(), Not(IsEmpty())) << title << ", " << name;
      if (finding.contains("advice")) {
        EXPECT_THAT(finding.at("advice").get<std::string>(), Not(HasSubstr("\n")));
      }
    }
}

TEST(Doctor, HearsOfThreadsThatAreAskedFor) {
  const Workplace place;
  Workplace::Variables variables = kNoPython;
  variables.emplace_back("OMP_NUM_THREADS", "3");
  EXPECT_THAT(place.run({"doctor"}, variables).out, HasSubstr("3 for one rank"));
}

TEST(Doctor, NamesTheLauncherAndTheRendezvousButNotTheToken) {
  const Workplace place;
  EXPECT_THAT(place.run({"doctor"}, kNoPython).out, HasSubstr("none: a training here has one rank"));
  Workplace::Variables variables = kNoPython;
  for (const auto& [name, value] : Workplace::Variables{{"SLURM_JOB_ID", "123456"},
                                                        {"SLURM_STEP_ID", "0"},
                                                        {"SLURM_PROCID", "1"},
                                                        {"SLURM_STEP_NUM_TASKS", "2"},
                                                        {"SLURM_LOCALID", "0"},
                                                        {"SLURM_NODEID", "1"},
                                                        {"SLURM_STEP_NUM_NODES", "2"},
                                                        {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                                                        {"SLURM_STEP_NODELIST", "n[7-8]"}})
    variables.emplace_back(name, value);
  const std::string without = place.run({"doctor"}, variables).out;
  EXPECT_THAT(without, AllOf(HasSubstr("srun: rank 1 of 2, of 1 on this machine"),
                             HasSubstr("rank 0 serves a store at n7:20510, a host that SLURM_STEP_NODELIST names"),
                             HasSubstr("not set")));
  variables.emplace_back("GRADRING_TOKEN", "token-of-this-test");
  EXPECT_THAT(place.run({"doctor"}, variables).out, Not(HasSubstr("token-of-this-test")));
}

TEST(Doctor, RejectsWhatItDoesNotKnow) {
  const Workplace place;
  const ProgramEnd end = place.run({"doctor", "--jsn"}, kNoPython);
  EXPECT_EQ(end.code, 2);
  EXPECT_THAT(end.err, HasSubstr("Did you mean"));
}

}  // namespace
}  // namespace gradring
