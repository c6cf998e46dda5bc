// SPDX-License-Identifier: Apache-2.0
// The program trains on simulated GPUs, with our own kernels as nvcc compiled them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/json.h"
#include "tests/support/run_program.h"
#include "tests/train/app/commands/support/run_directories.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using tests::joined;
using tests::ProgramEnd;
using tests::Words;

const Words kMuon = {"--model", "small.toml", "--optimizer", "muon", "--lr", "0.02", "--momentum", "0.9", "--nesterov"};

class SimulatedTraining : public tests::RunDirectories {
 protected:
  /// Three steps of eight samples.
  ProgramEnd train(const Words& more) { return train_under({}, more); }
  ProgramEnd train_under(const Words& launcher, const Words& more) {
    return place_.run(joined(joined(launcher, tests::short_training({"--steps", "3", "--batch-size", "8", "--timeout",
                                                                     "120s", "--threads", "1"})),
                             more));
  }
  std::vector<double> losses_in(const char* run) const {
    std::vector<double> losses;
    for (const std::string& line : tests::records_of(place_.path(run) / "metrics.jsonl"))
      if (const json record = json::parse(line); record.at("event") == "train") losses.push_back(record.at("loss"));
    return losses;
  }
  /// Over 20 steps.
  void expect_the_losses_of_the_cpu(const Words& more, double bound) {
    const Words longer = joined(more, {"--epochs", "3", "--steps", "20"});
    const ProgramEnd cpu = train(joined(longer, {"--device", "cpu", "--run-dir", "cpu"}));
    ASSERT_EQ(cpu.code, 0) << cpu.err;
    const ProgramEnd gpu = train(joined(longer, {"--device", "cuda", "--simulate-gpu", "h100", "--run-dir", "gpu"}));
    ASSERT_EQ(gpu.code, 0) << gpu.err;
    EXPECT_EQ(gpu.err.find("simulated GPU:"), std::string::npos) << gpu.err;
    const std::vector<double> expected = losses_in("cpu"), found = losses_in("gpu");
    ASSERT_EQ(expected.size(), 20u);
    ASSERT_EQ(found.size(), 20u);
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], bound) << "step " << i + 1;
  }
  std::string weights_in(const char* run) const {
    return summary_in(place_.path(run)).at("parameters_sha256").get<std::string>();
  }
  /// For optimizers that compute much. Few of its sizes are multiples of 8.
  void write_small_model() const {
    std::ofstream(place_.path("small.toml")) << R"(layers = [
  { conv2d = "conv1", out = 12, kernel = 3, stride = 2 },
  { relu = "relu1" },
  { conv2d = "conv2", out = 20, kernel = 3, stride = 2 },
  { relu = "relu2" },
  { flatten = "flatten" },
  { linear = "fc1", out = 24 },
  { relu = "relu3" },
  { linear = "fc2", out = "classes" },
])";
  }
  struct Layout {
    const char* run;
    std::string ranks, stage;
  };
  /// Layouts of as many ranks as the first give its bits.
  void expect_equal_replicas(const Words& more, const std::vector<Layout>& layouts) {
    for (const auto& [run, ranks, stage] : layouts) {
      const ProgramEnd end =
          train(joined({"--device", "cuda", "--simulate-gpu", "h100", "--precision", "fp16", "--nprocs", ranks,
                        "--zero", stage, "--check-replicas", "1", "--steps", "2", "--run-dir", run},
                       more));
      ASSERT_EQ(end.code, 0) << run << ": " << end.err;
      EXPECT_EQ(losses_in(run).size(), 2u) << run;
      EXPECT_EQ(end.err.find("simulated GPU:"), std::string::npos) << end.err;
      if (ranks == layouts.front().ranks) {
        EXPECT_EQ(weights_in(run), weights_in(layouts.front().run)) << run;
      }
    }
  }
};

/// At their usual shapes; scripts/simulated_gpu.sh does it in every type, tests/kernels/on_simulated_gpu at other shapes.
TEST_F(SimulatedTraining, HasKernelsThatAgreeWithTheirReferences) {
  tests::RunningProgram program(
      place_.gradring({"bench", "kernels", "--device", "cuda", "--simulate-gpu", "h100", "--dtype", "fp16"}));
  const ProgramEnd end = program.wait(std::chrono::minutes(10));  // a minute and a half on two busy cores
  EXPECT_EQ(end.code, 0) << end.out << end.err;
  EXPECT_THAT(end.out, HasSubstr("results, none wrong"));
}

TEST_F(SimulatedTraining, HasTheLossesOfTheCpu) {
  expect_the_losses_of_the_cpu({"--precision", "fp32"}, 1e-4);
  EXPECT_THAT(tests::text_of(place_.path("gpu") / "metrics.jsonl"), HasSubstr("simulated NVIDIA H100"));
  EXPECT_EQ(summary_in(place_.path("gpu")).at("device"), "cuda:0, simulated h100");
}

/// The variants that an H100 chooses, which the CPU runs by its execution model. Both sum products in f32 in the same
/// order and round to f16 at the same places; what differs are the last bits of exp and log. The bound: 4 units in the
/// last place of a loss between 2 and 4.
TEST_F(SimulatedTraining, HasTheLossesOfTheExecutionModelInFp16) {
  expect_the_losses_of_the_cpu({"--precision", "fp16", "--conv", "conv_relu_pool/mma", "--gemm", "wgmma"}, 0x1p-20);
}

/// Dropout by captured graphs: every step has its own mask, that of the CPU.
TEST_F(SimulatedTraining, DropsOutTheSameAsTheCpu) {
  std::ofstream(place_.path("dropout.toml")) << R"(layers = [
  { conv2d = "conv", out = 4, kernel = 3, stride = 2 },
  { relu = "relu" },
  { dropout = "drop1", p = 0.25 },
  { flatten = "flatten" },
  { dropout = "drop2" },
  { linear = "fc", out = "classes" },
])";
  expect_the_losses_of_the_cpu({"--model", "dropout.toml", "--precision", "fp32"}, 1e-6);
}

TEST_F(SimulatedTraining, HasTheSameBitsWithEverySeedAndWithoutGraphs) {
  const Words gpu = {"--device", "cuda", "--simulate-gpu", "h100", "--precision", "fp16"};
  for (const auto& [run, more] : std::vector<std::pair<const char*, Words>>{
           {"first", {}}, {"second", {"--simulate-seed", "7"}}, {"eager", {"--cuda-graph", "off"}}}) {
    const ProgramEnd end = train(joined(joined(gpu, more), {"--run-dir", run}));
    ASSERT_EQ(end.code, 0) << run << ": " << end.err;
    EXPECT_EQ(weights_in(run), weights_in("first")) << run;
  }
}

/// By products in BF16, where the CPU has FP32. The gradient of 8 samples has a rank of 8; in other directions the update
/// is noise of BF16 (kernels/ops/muon/README.md). Losses fall by 0.11 and differ by 0.003.
TEST_F(SimulatedTraining, OrthogonalizesAsTheCpuButForNoise) {
  write_small_model();
  expect_the_losses_of_the_cpu(joined(kMuon, {"--weight-decay", "0.1", "--precision", "fp32"}), 0.01);
}

TEST_F(SimulatedTraining, OrthogonalizesTheSameInEveryStageOfZero) {
  write_small_model();
  expect_equal_replicas(joined(kMuon, {"--muon-scale", "normalize"}),
                        {{"ddp", "2", "0"}, {"zero1", "2", "1"}, {"zero2", "2", "2"}, {"zero3", "2", "3"}});
}

TEST_F(SimulatedTraining, KeepsReplicasEqualInEveryStageOfZero) {
  expect_equal_replicas(
      {}, {{"ddp", "2", "0"}, {"zero1", "2", "1"}, {"zero2", "2", "2"}, {"zero3", "2", "3"}, {"four", "4", "0"}});
}

TEST_F(SimulatedTraining, KeepsItsKernelsWhenItIsResumed) {
  write_small_model();
  const Words gpu = {"--device", "cuda", "--simulate-gpu", "h100", "--precision", "fp16", "--model", "small.toml"};
  const ProgramEnd first = train(joined(gpu, {"--steps", "1", "--conv", "direct", "--run-dir", "first"}));
  ASSERT_EQ(first.code, 0) << first.err;
  const ProgramEnd resumed = train(joined(gpu, {"--autotune", "--resume", "first", "--run-dir", "resumed"}));
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.out + resumed.err, HasSubstr("the kernels of each layer stay"));
  EXPECT_THAT(place_.run({"ckpt", "inspect", "resumed"}).out, HasSubstr(R"("relu1"] by "conv2d/direct")"));
}

TEST_F(SimulatedTraining, NamesAKilledRank) {
  const ProgramEnd end = train({"--device", "cuda", "--simulate-gpu", "h100", "--precision", "fp16", "--nprocs", "2",
                                "--inject", "kill:rank=1,step=3"});
  EXPECT_EQ(end.code, 137) << end.err;
  EXPECT_THAT(end.err, HasSubstr("rank 0 lost a peer"));
  EXPECT_THAT(end.err, Not(HasSubstr("simulated GPU:")));
}

TEST_F(SimulatedTraining, GoesOnAfterAKilledRankToTheSameWeights) {
  const Words launch = {"launch", "--nproc-per-node", "2", "--max-restarts", "1"};
  const Words saving = {"--device", "cuda", "--simulate-gpu", "h100", "--precision", "fp16", "--save-every-steps", "1"};
  for (const auto& [run, more] :
       std::vector<std::pair<const char*, Words>>{{"whole", {}}, {"killed", {"--inject", "kill:rank=1,step=3"}}}) {
    const ProgramEnd end = train_under(launch, joined(joined(saving, more), {"--resume", "auto", "--run-dir", run}));
    ASSERT_EQ(end.code, 0) << run << ": " << end.err;
    EXPECT_EQ(end.err.find("was killed") != std::string::npos, !more.empty()) << end.err;
  }
  EXPECT_EQ(weights_in("killed"), weights_in("whole"));
}

/// Of this library the symbols are right, but its work would not run on simulated GPUs.
TEST_F(SimulatedTraining, TakesNoNcclOfRealGpus) {
  const ProgramEnd end =
      place_.run(tests::short_training({"--device", "cuda", "--simulate-gpu", "h100", "--nprocs", "2"}),
                 {{"LD_LIBRARY_PATH", GRADRING_STAND_IN_FOLDER}});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(place_.left(), ElementsAre("run"))
      << "messages are files in the folder of the launcher, which removes it";
}

TEST_F(SimulatedTraining, ReducesExactSumsInTheBenchmark) {
  const ProgramEnd end = place_.run({"bench", "allreduce", "--device", "cuda", "--simulate-gpu", "h100", "--sizes",
                                     "4,4K,100004", "-n", "1", "-w", "1", "-J", "sums.json"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("2 ranks over simulated nccl"));
  EXPECT_THAT(end.out, HasSubstr("# the GPU is simulated on the CPU"));
}

TEST_F(SimulatedTraining, IsComparedByTheCountersOfTheSameCard) {
  const auto bench = [&](const std::string& card, const std::string& file) {
    const ProgramEnd end = place_.run({"bench", "step", "--device", "cuda", "--simulate-gpu", card, "--dataset",
                                       "digits", "--batch-size", "8", "--steps", "1", "--counters", "-J", file});
    EXPECT_EQ(end.code, 0) << end.err;
  };
  bench("h100", "one.json");
  bench("h100", "again.json");
  bench("a100", "other.json");
  const ProgramEnd same = place_.run({"bench", "diff", "--threshold", "0", "one.json", "again.json"});
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  const ProgramEnd other = place_.run({"bench", "diff", "--threshold", "0", "one.json", "other.json"});
  EXPECT_THAT(other.out + other.err, HasSubstr("simulated a100"));
  EXPECT_THAT(other.out, HasSubstr("0 slower, 0 faster, 0 same"));
}

/// After any step, not only after every 32nd as on a real GPU.
TEST_F(SimulatedTraining, StopsOnRequest) {
  tests::RunningProgram interrupted(place_.gradring(
      tests::short_training({"--device", "cuda", "--simulate-gpu", "h100", "--epochs", "20", "--steps", "31",
                             "--batch-size", "8", "--run-dir", "run", "--inject", "delay:rank=0,step=12,ms=3000"})));
  ASSERT_TRUE(trains(run()));
  ::kill(interrupted.pid(), SIGINT);
  const ProgramEnd end = interrupted.wait();
  EXPECT_EQ(end.code, 130) << end.err;
  EXPECT_EQ(summary_in(run()).at("outcome"), "interrupted");
  EXPECT_LT(summary_in(run()).at("steps"), 31);
}

/// Of an epoch of many steps, 11 were enqueued. A request to stop would wait for those without a result.
TEST_F(SimulatedTraining, LacksTheResultsOfFourStepsAtMost) {
  const ProgramEnd end = place_.run({"train", "--device", "cuda", "--simulate-gpu", "h100", "--dataset", "digits",
                                     "--batch-size", "8", "--run-dir", "run", "--inject", "kill:rank=0,step=12"});
  EXPECT_EQ(end.code, 137) << end.err;
  EXPECT_GE(losses_in("run").size(), 7u);
}

TEST_F(SimulatedTraining, RejectsInADryRunWhatItRejectsLater) {
  for (const Words& words : {Words{"--conv", "panels"}, Words{"--comm", "tcp"}}) {
    const Words simulated = joined(words, {"--device", "cuda", "--simulate-gpu", "h100"});
    const ProgramEnd dry = train(joined(simulated, {"--dry-run"})), end = train(simulated);
    EXPECT_EQ(dry.code, 2) << words[1];
    EXPECT_EQ(dry.err, end.err);
  }
}

TEST_F(SimulatedTraining, IsOfferedWhereThereIsNoGpu) {
  const ProgramEnd end = train({"--device", "cuda:99"});
  EXPECT_EQ(end.code, 3) << end.err;
  EXPECT_THAT(end.err, HasSubstr("or use --device cpu, or --device cuda --simulate-gpu h100"));
}

TEST_F(SimulatedTraining, LabelsResults) {
  const Words gpu = {"--device", "cuda", "--simulate-gpu", "h100"};
  const ProgramEnd kernels =
      place_.run(joined({"bench", "kernels", "--op", "relu", "--shape", "elements=99", "-J", "relu.json"}, gpu));
  ASSERT_EQ(kernels.code, 0) << kernels.err;
  const json relu = json::parse(tests::text_of(place_.path("relu.json")));
  EXPECT_EQ(relu.at("device"), "cuda:0, simulated h100");
  EXPECT_EQ(relu.at("cases").at(0).at("variants").at(0).at("right"), true);

  const ProgramEnd end = train(joined(gpu, {"--trace", "trace.json", "--trace-steps", "1:2", "--run-dir", "run"}));
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out + end.err, HasSubstr("the trace has no GPU activities: the GPU is simulated"));
  const ProgramEnd eval = place_.run(joined({"eval", "run", "--simulate-seed", "3"}, gpu));
  ASSERT_EQ(eval.code, 0) << eval.err;
  EXPECT_THAT(eval.out, HasSubstr(", cuda:0, simulated h100 by cuda"));
}

TEST_F(SimulatedTraining, RejectsBenchmarksOfTimes) {
  for (const Words& command :
       {Words{"bench", "scaling", "--device", "cuda", "--simulate-gpu", "h100"},
        Words{"bench", "parallel", "--device", "cuda", "--simulate-gpu", "h100"},
        Words{"bench", "kernels", "--device", "cuda", "--simulate-gpu", "h100", "--op", "relu", "--csv-file",
              "times.csv"},
        Words{"bench", "kernels", "--device", "cuda", "--simulate-gpu", "h100", "--op", "relu", "--ncu"}}) {
    const ProgramEnd end = place_.run(command);
    EXPECT_EQ(end.code, 2) << command.at(1) << ": " << end.err;
    EXPECT_THAT(end.err, HasSubstr("simulate")) << command.at(1);
  }
}

}  // namespace
}  // namespace gradring
