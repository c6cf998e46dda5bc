// SPDX-License-Identifier: Apache-2.0
// `gradring train` in worlds of changing size: agents join, leave and are lost; training resumes from the last
// checkpoint.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <functional>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/run_directories.h"
#include "tests/train/launch/process_table.h"
#include "tests/train/support/text_of.h"
#include "train/launch/workers/host.h"

namespace gradring {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using tests::joined;
using tests::RunningProgram;
using tests::Words;
using tests::Workplace;
using train::eventually;

const Words kTraining = tests::short_training({"--epochs", "100", "--steps", "40", "--save-every-steps", "4",
                                               "--resume", "auto", "--timeout", "5s", "--threads", "1"});
const Words kReproducible = joined(kTraining, {"--reproducible", "--global-batch", "24"});
/// Pauses the first attempt, so that agents join or end in the middle of the training.
const Words kPause = {"--inject", "delay:rank=0,step=11,ms=2000"};

json summary_in(const Workplace& place) {
  return tests::try_parse_json(tests::text_of(place.path("run/summary.json")));
}

std::string weights_in(const Workplace& place) {
  const json summary = summary_in(place);
  return summary.is_object() ? summary.at("parameters_sha256").get<std::string>() : "no summary";
}

class ElasticTraining : public ::testing::Test {
 protected:
  RunningProgram agent(const Workplace& place, int workers, const Words& training) const {
    return RunningProgram(place.gradring(
        joined({"launch", "--nnodes=1:2", fmt::format("--nproc-per-node={}", workers), "--rdzv-backend=c10d",
                fmt::format("--rdzv-endpoint=127.0.0.1:{}", port_), "--rdzv-id=elastic-training",
                "--rdzv-conf=last_call_timeout=2,join_timeout=60", "--max-restarts=0", "--kill-grace=5"},
               training),
        {{"GRADRING_TOKEN", "token of this test"}}));
  }
  /// The first agent that listens leads.
  static bool listens(const RunningProgram& agent) {
    return eventually([&] { return train::tcp_sockets_of(agent.pid()) > 0; });
  }
  static bool has_saved(const Workplace& place, int step) {
    return eventually(
        [&] { return std::filesystem::exists(place.path(fmt::format("run/checkpoints/step-{}", step))); });
  }
  /// Of an undisturbed run.
  std::string expected_weights() const {
    const Workplace whole;
    const auto end = whole.run(joined({"launch", "--nproc-per-node=3"}, kReproducible));
    EXPECT_EQ(end.code, 0) << end.err;
    return weights_in(whole);
  }

  int port_ = train::free_tcp_port();
};

TEST_F(ElasticTraining, ReachesTheSameWeightsWithFewerRanks) {
  const Workplace first, second;
  RunningProgram leading = agent(first, 1, joined(kReproducible, kPause));
  ASSERT_TRUE(listens(leading));
  RunningProgram lost = agent(second, 2, joined(kReproducible, kPause));
  ASSERT_TRUE(has_saved(first, 8));
  ::kill(lost.pid(), SIGKILL);
  lost.wait();
  const auto end = leading.wait();
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("restarting all workers, which does not count as a restart"));
  EXPECT_EQ(summary_in(first).at("world_size"), 1);
  EXPECT_EQ(weights_in(first), expected_weights());
}

TEST_F(ElasticTraining, ReachesTheSameWeightsWithMoreRanks) {
  const Workplace first, second;
  RunningProgram leading = agent(first, 1, joined(kReproducible, kPause));
  ASSERT_TRUE(listens(leading));
  ASSERT_TRUE(has_saved(first, 8));
  RunningProgram late = agent(second, 2, joined(kReproducible, kPause));
  const auto end = leading.wait();
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(late.wait().code, 0);
  EXPECT_EQ(summary_in(first).at("world_size"), 3);
  EXPECT_THAT(tests::text_of(first.path("run/logs/rank_0.log")), HasSubstr("resumes after step "));
  EXPECT_EQ(weights_in(first), expected_weights());
}

TEST_F(ElasticTraining, SavesOneCommonStepWhenANodeLeaves) {
  const Workplace first, second;
  RunningProgram leading = agent(first, 1, joined(kReproducible, kPause));
  ASSERT_TRUE(listens(leading));
  RunningProgram leaving = agent(second, 1, joined(kReproducible, kPause));
  ASSERT_TRUE(has_saved(first, 8));
  ::kill(leaving.pid(), SIGTERM);
  EXPECT_EQ(leaving.wait().code, 143);
  const auto end = leading.wait();
  EXPECT_EQ(end.code, 0) << end.err;
  const std::string log = tests::text_of(first.path("run/logs/rank_1.log"));
  const auto at = log.find("stopped by request after step ");
  ASSERT_NE(at, std::string::npos) << log;
  const std::string step = log.substr(at + 16, log.find_first_not_of("0123456789", at + 16) - at - 16);
  EXPECT_THAT(tests::text_of(first.path("run/logs/rank_0.log")),
              AllOf(HasSubstr("stopped by request after step " + step), HasSubstr("resumes after step " + step)));
  EXPECT_EQ(weights_in(first), expected_weights());
}

TEST_F(ElasticTraining, ReportsAChangedGlobalBatch) {
  const Workplace first, second;
  RunningProgram leading = agent(first, 1, joined(kTraining, kPause));
  ASSERT_TRUE(listens(leading));
  RunningProgram lost = agent(second, 1, joined(kTraining, kPause));
  ASSERT_TRUE(has_saved(first, 8));
  ::kill(lost.pid(), SIGKILL);
  lost.wait();
  const auto end = leading.wait();
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("a step has 8 samples on 1 rank, but had 16 when the checkpoint was saved"));
}

}  // namespace
}  // namespace gradring
