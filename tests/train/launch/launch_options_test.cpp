// SPDX-License-Identifier: Apache-2.0
#include "train/launch/launch_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "kernels/runtime/error.h"

namespace gradring::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

LaunchWorld world_with(const std::map<std::string, std::string>& variables) {
  return {.lookup = [variables](const std::string& name) -> std::optional<std::string> {
            const auto it = variables.find(name);
            return it == variables.end() ? std::nullopt : std::optional(it->second);
          },
          .cores = 6,
          .own_program = "/bin/gradring",
          .random_run_id = [] { return std::string("random"); },
          .free_tcp_port = [] { return 40000; }};
}

LaunchOptions parse(const Words& words, const std::map<std::string, std::string>& variables = {}) {
  return parse_launch(words, world_with(variables)).options;
}

std::string fault_of(const Words& words, const std::map<std::string, std::string>& variables = {}) try {
  parse(words, variables);
  return "";
} catch (const InvalidArgument& error) {
  return error.what();
}

TEST(ParseLaunch, TrainIsThisProgram) {
  const auto options = parse({"--nproc-per-node", "2", "train", "--nproc-per-node", "x"});
  EXPECT_EQ(options.nproc_per_node, 2);
  EXPECT_EQ(options.program, "/bin/gradring");
  EXPECT_THAT(options.arguments, ElementsAre("train", "--nproc-per-node", "x"));
}

TEST(ParseLaunch, AfterTwoDashesAnyProgram) {
  const auto options = parse({"--", "python3", "-u", "--", "x.py"});
  EXPECT_EQ(options.program, "python3");
  EXPECT_THAT(options.arguments, ElementsAre("-u", "--", "x.py"));
  EXPECT_EQ(options.nproc_per_node, 1);
}

TEST(ParseLaunch, KnowsBothSpellingsAndBothForms) {
  for (const Words& words : {Words{"--nproc-per-node", "3"}, Words{"--nproc_per_node", "3"},
                             Words{"--nproc-per-node=3"}, Words{"--nproc_per_node=3"}, Words{"--nproc_per-node=3"}}) {
    Words all = words;
    all.push_back("train");
    EXPECT_EQ(parse(all).nproc_per_node, 3);
  }
}

TEST(ParseLaunch, AutoIsTheNumberOfCores) {
  EXPECT_EQ(parse({"--nproc-per-node=auto", "train"}).nproc_per_node, 6);
  EXPECT_EQ(parse({"--nproc-per-node=cpu", "train"}).nproc_per_node, 6);
}

TEST(ParseLaunch, VariablesStandBetweenCommandLineAndDefaults) {
  const std::map<std::string, std::string> variables = {
      {"PET_NPROC_PER_NODE", "4"}, {"PET_STANDALONE", "1"}, {"PET_RDZV_ID", "job"}, {"PET_KILL_GRACE", "2.5"}};
  const auto options = parse({"--nproc-per-node=2", "train"}, variables);
  EXPECT_EQ(options.nproc_per_node, 2);
  EXPECT_EQ(options.run_id, "job");
  EXPECT_EQ(options.master_port, 40000);
  EXPECT_EQ(options.kill_grace, std::chrono::milliseconds(2500));
  EXPECT_EQ(parse({"train"}, {{"PET_STANDALONE", "0"}}).master_port, 29500);
}

TEST(ParseLaunch, TakesTheGraceInAnyUnit) {
  const std::vector<std::pair<std::string, int>> cases = {
      {"30", 30'000}, {"0.1", 100}, {"30s", 30'000}, {"1.5s", 1500}, {"500ms", 500}, {"2m", 120'000}, {"0", 0}};
  for (const auto& [text, milliseconds] : cases)
    EXPECT_EQ(parse({"--kill-grace", text, "train"}).kill_grace, std::chrono::milliseconds(milliseconds)) << text;
}

TEST(ParseLaunch, StandaloneHasAnIdAndAPortOfItsOwnUnlessTheyAreGiven) {
  const auto alone = parse({"--standalone", "train"});
  EXPECT_EQ(alone.run_id, "random");
  EXPECT_EQ(alone.master_addr, "localhost");
  EXPECT_EQ(alone.master_port, 40000);
  const auto given = parse({"--master-port=7", "--standalone", "--rdzv-id=x", "--master-addr=h", "train"});
  EXPECT_EQ(given.run_id, "x");
  EXPECT_EQ(given.master_addr, "h");
  EXPECT_EQ(given.master_port, 7);
}

TEST(ParseLaunch, AcceptsWhatOneNodeMeans) {
  EXPECT_EQ(fault_of({"--nnodes=1", "--node-rank=0", "--max-restarts=0", "train"}), "");
  EXPECT_EQ(fault_of({"--nnodes", "1:1", "train"}), "");
}

TEST(ParseLaunch, RefusesWithWords) {
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"--nnodes=2", "train"}, "--nnodes=2: several machines are not built yet"},
      {{"--nnodes", "1:4", "train"}, "--nnodes=1:4: several machines are not built yet"},
      {{"--node-rank=1", "train"}, "--node-rank=1: several machines are not built yet"},
      {{"--max_restarts=3", "train"}, "--max_restarts=3: restarting workers is not built yet"},
      {{"--nproc-per-node=0", "train"}, "--nproc-per-node=0: must be a whole number from 1 to 4096"},
      {{"--nproc-per-node=two", "train"}, "must be a whole number"},
      {{"--nproc-per-node=2x", "train"}, "must be a whole number"},
      {{"--nproc-per-node=gpu", "train"}, "counting GPUs is not built yet"},
      {{"--master-port=65536", "train"}, "must be a whole number from 1 to 65535"},
      {{"--kill-grace=-1", "train"}, "must be a time such as 30s"},
      {{"--kill-grace=nan", "train"}, "must be a time such as 30s"},
      {{"--kill-grace=", "train"}, "must be a time such as 30s"},
      {{"--kill-grace=s", "train"}, "must be a time such as 30s"},
      {{"--kill-grace=2h", "train"}, "must be a time such as 30s"},
      {{"--kill-grace=1441m", "train"}, "must be a time such as 30s, 500ms or 2m, at most a day"},
      {{"--standalone=1", "train"}, "--standalone takes no value"},
      {{"--nproc-per-node"}, "--nproc-per-node needs a value: --nproc-per-node N"},
      {{"--nproc-per-node", "--standalone", "train"}, "--nproc-per-node needs a value"},
      {{"--nproc_per_nod=2", "train"}, "unknown option --nproc_per_nod; the nearest is --nproc-per-node"},
      {{"--frobnicate", "train"}, "unknown option --frobnicate; see gradring launch --help"},
      {{"-n", "2", "train"}, "unknown option -n"},
      {{}, "nothing to run"},
      {{"--standalone"}, "nothing to run"},
      {{"--"}, "nothing to run"},
      {{"./mine.sh", "x"},
       "'./mine.sh' is neither `train` nor `bench`: to run another program, say `-- ./mine.sh ...`"},
  };
  for (const auto& [words, text] : cases)
    EXPECT_THAT(fault_of(words), HasSubstr(text)) << testing::PrintToString(words);
  EXPECT_THAT(fault_of({"train"}, {{"PET_NNODES", "2"}}), HasSubstr("PET_NNODES=2: several machines"));
}

TEST(ParseLaunch, AdvisesNothingThatIsNotThere) {
  EXPECT_THAT(fault_of({"--max-restarts=3", "train"}), ::testing::Not(HasSubstr("--resume")));
}

TEST(ParseLaunch, HelpNamesEveryOption) {
  EXPECT_TRUE(parse_launch(Words{"--help"}, world_with({})).help);
  EXPECT_TRUE(parse_launch(Words{"--standalone", "-h", "train"}, world_with({})).help);
  EXPECT_FALSE(parse_launch(Words{"train", "--help"}, world_with({})).help);
  for (const char* name : {"--nproc-per-node N", "--nnodes N", "--standalone ", "--rdzv-id ID", "--master-addr HOST",
                           "--master-port PORT", "--role NAME", "--max-restarts N", "--kill-grace TIME", "--help"})
    EXPECT_THAT(launch_help(), HasSubstr(name));
}

}  // namespace
}  // namespace gradring::train
