// SPDX-License-Identifier: Apache-2.0
// The benchmarks, as processes of the program. Times are not checked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "nn/backend/cpu/onednn.h"
#include "nn/models/model.h"
#include "tests/support/json.h"
#include "tests/train/app/commands/support/workplace.h"
#include "tests/train/support/text_of.h"
#include "train/core/doctor/find_python.h"

namespace gradring {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using tests::ProgramEnd;
using tests::Words;
using tests::Workplace;

nlohmann::json json_of(const Workplace& place) { return tests::parse_json(tests::text_of(place.path("bench.json"))); }

TEST(BenchKernels, ChecksAndTimesEveryVariantOfAnOperation) {
  const Workplace place;
  const ProgramEnd end =
      place.run({"bench", "kernels", "--op", "relu", "--shape", "elements=1000", "--seconds", "0", "-J", "bench.json"});
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("relu forward [elements=1000] f32"), HasSubstr("relu backward"),
                             HasSubstr("plain loop"), HasSubstr("commit ")));
  const auto json = json_of(place);
  EXPECT_EQ(json.at("benchmark"), "kernels");
  const auto& forward = json.at("cases").at(0);
  EXPECT_EQ(forward.at("shape"), "elements=1000");
  EXPECT_EQ(forward.at("bytes"), 8000);
  EXPECT_EQ(forward.at("variants").at(0).at("error"), 0);
  EXPECT_GT(forward.at("variants").at(0).at("times_plain_loop"), 0);
  EXPECT_GE(forward.at("variants").at(0).at("flushed_microseconds").at("count"), 5);
}

TEST(BenchKernels, ShowsEveryVariantOfAnOperation) {
  const Workplace place;
  const Words words = {"bench",     "kernels", "--op",      "gemm", "--shape", "batch=3,in=5,out=7",
                       "--seconds", "0",       "--no-peers"};
  const ProgramEnd end = place.run(words);
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(ContainsRegex("  strips +0"), ContainsRegex("  tiled +0.* not timed: made for GPUs"),
                             HasSubstr("  not for f32 on cpu: wmma, mma, wgmma\n")));
  Words half = words;
  half.insert(half.end(), {"--dtype", "fp16", "-J", "bench.json"});
  ASSERT_EQ(place.run(half).code, 0);
  std::vector<std::string> kinds;
  const auto results = json_of(place);  // outlives the loop over its parts
  for (const auto& variant : results.at("cases").at(0).at("variants")) {
    kinds.push_back(variant.at("name").get<std::string>() + " " + variant.at("kind").get<std::string>());
    EXPECT_TRUE(variant.at("right"));
  }
  EXPECT_THAT(kinds,
              ElementsAre("strips variant", "tiled emulated", "wmma emulated", "mma emulated", "wgmma emulated"));
  half.insert(half.end(), {"--variant", "wgmma"});
  EXPECT_THAT(place.run(half).out, AllOf(HasSubstr("  wgmma "), Not(HasSubstr("strips"))));
}

// The roofline is that of one core, and so are our kernels' and the library's times.
TEST(BenchKernels, ComputesOnOneCore) {
  const Workplace place;
  const ProgramEnd end =
      place.run({"bench", "kernels", "--op", "gemm", "--shape", "batch=64,in=256,out=128", "--seconds", "0"},
                {{"OMP_NUM_THREADS", "4"}, {"OMP_DISPLAY_AFFINITY", "TRUE"}});
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.err, Not(HasSubstr("level 1 thread"))) << "of a parallel region of several threads";
}

TEST(BenchKernels, NamesTheKernelsOfACallAlsoWhereThereAreNoRegisters) {
  const Workplace place;
  const ProgramEnd end =
      place.run({"bench", "kernels", "--op", "adam", "--shape", "elements=1000", "--seconds", "0", "-J", "bench.json"});
  ASSERT_EQ(end.code, 0) << end.err;
  const auto launches = json_of(place).at("cases").at(0).at("variants").at(0).at("launches");
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_THAT(launches.at(0).at("kernel").get<std::string>(), HasSubstr("adam_run_flat_kernel"));
  EXPECT_EQ(launches.at(0).at("threads"), 1);
  EXPECT_FALSE(launches.at(0).contains("registers"));
}

TEST(BenchKernels, MeasuresALibraryBesideOurs) {
  if (!nn::has_onednn()) GTEST_SKIP() << nn::describe_onednn();
  const Workplace place;
  const ProgramEnd end = place.run(
      {"bench", "kernels", "--op", "gemm", "--shape", "batch=3,in=5,out=7", "--seconds", "0", "-J", "bench.json"});
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("onednn"), HasSubstr("x peer")));
  const auto results = json_of(place);  // outlives the loop over its parts
  int with_peer = 0;
  for (const auto& c : results.at("cases")) {
    const auto& variants = c.at("variants");
    const auto peer = std::ranges::find_if(variants, [](const auto& variant) { return variant.at("kind") == "peer"; });
    if (peer == variants.end()) continue;  // of an epilogue that the library lacks
    ++with_peer;
    EXPECT_EQ(peer->at("name"), "onednn");
    EXPECT_EQ(peer->at("times_peer"), 1);
    EXPECT_GT(variants.at(0).at("times_peer"), 0);
  }
  EXPECT_GE(with_peer, 3) << "y, dx and dw of a linear layer";
  const ProgramEnd alone =
      place.run({"bench", "kernels", "--op", "gemm", "--shape", "batch=3,in=5,out=7", "--seconds", "0", "--no-peers"});
  EXPECT_EQ(alone.code, 0) << alone.err;
  EXPECT_THAT(alone.out, Not(HasSubstr("onednn")));
}

TEST(BenchKernels, PrintsTheProfilersCommandAndRunsNothing) {
  const Workplace place;
  const ProgramEnd end = place.run({"bench", "kernels", "--op", "conv2d", "--variant", "mma", "--dtype", "fp16",
                                    "--shape", "in=32,batch=512", "--ncu", "-J", "bench.json"});
  ASSERT_EQ(end.code, 0) << end.err;
  const std::string path = std::filesystem::canonical(GRADRING_BINARY);
  const std::string program = path.find(' ') == path.npos ? path : "'" + path + "'";
  EXPECT_EQ(end.out,
            "ncu --set full --kernel-name-base function --kernel-name 'regex:^conv2d_' --filter-mode per-launch-config "
            "--launch-skip 3 --launch-count 1 --force-overwrite --export ncu_conv2d_mma_fp16 " +
                program +
                " bench kernels --device cuda --op conv2d --dtype fp16 --seconds 0 --no-peers --variant mma --shape "
                "batch=512,in=32\n");
  EXPECT_THAT(place.left(), IsEmpty());
  EXPECT_THAT(place.run({"bench", "kernels", "--op", "conv_relu_pool", "--device", "cuda:1", "--ncu"}).out,
              AllOf(HasSubstr(" --device cuda:1 "), HasSubstr("'regex:^(conv_relu_pool|conv2d)_'")));
  const ProgramEnd of_what = place.run({"bench", "kernels", "--ncu"});
  EXPECT_EQ(of_what.code, 2);
  EXPECT_THAT(of_what.err, HasSubstr("--ncu needs --op"));
}

TEST(BenchKernels, RejectsNamesThatItDoesNotKnow) {
  const Workplace place;
  const auto refused = [&](const Words& more, const std::string& why) {
    const ProgramEnd end = place.run(tests::joined({"bench", "kernels", "--seconds", "0"}, more));
    EXPECT_EQ(end.code, 2) << end.err;
    EXPECT_THAT(end.err, HasSubstr(why));
    EXPECT_EQ(end.out, "") << "before anything is measured";
  };
  refused({"--op", "rleu"}, "must be one of fill, scale, ");
  refused({"--op", "relu", "--shape", "elemnts=3"}, "Did you mean 'elements'?");
  refused({"--op", "relu", "--shape", "elements"}, "batch=256");
  refused({"--shape", "elements=3"}, "--shape needs --op");
  refused({"--op", "relu", "--variant", "flta"}, "there is only flat");
  refused({"-J", "nowhere/bench.json"}, "there is no folder ");
  refused({"--dtype", "i32"}, "fp32, fp16, bf16");
}

TEST(BenchStep, ShowsWhereTheTimeGoes) {
  const Workplace place;
  const ProgramEnd end = place.run({"bench", "step", "--dataset", "mnist", "--data-dir", "data", "--batch-size", "16",
                                    "--steps", "2", "--warmup", "1", "-J", "bench.json"});
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("forward   conv2d 1->32"), HasSubstr("optimizer"), HasSubstr("whole step"),
                             HasSubstr("samples a second"), HasSubstr("resident")));
  const auto json = json_of(place);
  EXPECT_EQ(json.at("batch_size"), 16);
  EXPECT_EQ(json.at("step_microseconds").at("count"), 2);
  EXPECT_THAT(place.left(), ElementsAre("bench.json"));
}

TEST(BenchStep, RejectsAutotuneWithoutAGpuAndOfSeveralRanks) {
  const Workplace place;
  const ProgramEnd on_cpu = place.run({"bench", "step", "--autotune"});
  EXPECT_EQ(on_cpu.code, 2) << on_cpu.err;
  EXPECT_THAT(on_cpu.err, HasSubstr("--autotune is for the kernels of a GPU"));
  const ProgramEnd of_two = place.run({"bench", "step", "--autotune", "--nprocs", "2"});
  EXPECT_EQ(of_two.code, 2) << of_two.err;
  EXPECT_THAT(of_two.err, HasSubstr("--autotune measures on one rank"));
}

TEST(BenchStep, SetsAProgramThatComputesActivationsTwiceBesideIt) {
  const Workplace place;
  const ProgramEnd end =
      place.run({"bench", "step", "--dataset", "mnist", "--data-dir", "data", "--batch-size", "8", "--steps", "2",
                 "--warmup", "1", "--model", "convnet-deep", "--checkpoint-activations", "auto", "-J", "bench.json"});
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out,
              AllOf(HasSubstr("all activations kept"), HasSubstr("--checkpoint-activations auto"), HasSubstr("ratio")));
  const auto json = json_of(place);
  const auto& cut = json.at("checkpointed");
  EXPECT_EQ(cut.at("loss"), json.at("loss"));
  EXPECT_LE(cut.at("times_activation_bytes"), 0.5);
  EXPECT_EQ(cut.at("step_microseconds").at("count"), 2);
}

TEST(BenchStep, ListsTheModelsItAcceptsAndRejectsOthers) {
  const Workplace place;
  const ProgramEnd help = place.run({"bench", "step", "--help"});
  EXPECT_EQ(help.code, 0);
  for (const std::string_view model : nn::model_names()) EXPECT_THAT(help.out, HasSubstr(std::string(model)));
  const ProgramEnd wrong = place.run({"bench", "step", "--model", "convnet-dep"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("no model 'convnet-dep'"), HasSubstr("Did you mean 'convnet-deep'?")));
}

TEST(BenchStep, TakesTheDataFolderFromTheEnvironment) {
  const Workplace place;
  const Words words = {"bench", "step", "--dataset", "mnist", "--batch-size", "8", "--steps", "1", "--warmup", "0"};
  EXPECT_EQ(place.run(words).code, 2);
  const ProgramEnd end = place.run(words, {{"GRADRING_DATA_DIR", "data"}});
  EXPECT_EQ(end.code, 0) << end.err;
}

TEST(BenchStep, NeedsAsManySamplesAsABatchHas) {
  const Workplace place;
  const ProgramEnd end =
      place.run({"bench", "step", "--dataset", "mnist", "--data-dir", "data", "--batch-size", "65", "--steps", "1"});
  EXPECT_EQ(end.code, 2);
  EXPECT_THAT(end.err, HasSubstr("batch size is 65, expected 1 to the 64 samples"));
}

/// What answers as PyTorch's side does, and takes `seconds` by its own account.
std::string stand_in_for_pytorch(const Workplace& place, const std::string& seconds) {
  const auto file = place.path("python");
  std::ofstream(file) << "#!/bin/sh\n"
                         "case \"$2\" in import*) echo torch 9.9; exit;; esac\n"
                         "read -r settings; echo \"$settings\" >> settings.txt; echo '{\"blas\": \"\"}'\n"
                         "while read -r line; do echo '{\"seconds\": "
                      << seconds << ", \"processor_seconds\": 3, \"loss\": 2, \"resident_bytes\": 4}'; done\n";
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  return file.string();
}

const Words kShortComparison = {"bench", "compare",  "--dataset", "mnist",        "--data-dir", "data",     "--steps",
                                "1",     "--rounds", "2",         "--batch-size", "8",          "--nprocs", "2"};

TEST(BenchCompare, TrainsInTurnsWithPyTorch) {
  const Workplace place;
  Words words = kShortComparison;
  words.insert(words.end(), {"--dataloader", "-J", "bench.json"});
  const ProgramEnd end = place.run(words, {{"GRADRING_PYTHON", stand_in_for_pytorch(place, "1000")}});
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("with torch 9.9"), HasSubstr("2 ranks x batch 8"), HasSubstr("round 2")));
  const auto only_case = json_of(place).at("cases").at(0);
  EXPECT_EQ(only_case.at("memory_format"), "contiguous");
  const auto& contenders = only_case.at("contenders");
  EXPECT_EQ(contenders.at(0).at("name"), "gradring");
  EXPECT_EQ(contenders.at(0).at("seconds").size(), 2u);
  EXPECT_GT(contenders.at(0).at("loss"), 0);
  EXPECT_EQ(contenders.at(1).at("median_seconds"), 1000);
  EXPECT_GT(contenders.at(1).at("times_ours"), 1);
  EXPECT_EQ(contenders.at(1).at("processor_seconds").at(0), 6) << "of both ranks";
  EXPECT_EQ(contenders.at(0).at("processor_seconds").size(), 2u);
  EXPECT_EQ(contenders.at(2).at("name"), "PyTorch, DataLoader");
  EXPECT_THAT(place.left(), ElementsAre("bench.json", "python", "settings.txt"));
}

/// Both losses after a few steps are the same only if networks, initial weights and batches are.
TEST(BenchCompare, TrainsTheNetworkOfAModelFileWithPyTorch) {
  const train::PythonSearch search = train::search_python_with_torch();
  if (!search.python) GTEST_SKIP() << search.to_string();
  const Workplace place;
  std::ofstream(place.path("net.toml")) << R"(layers = [
  { conv2d = "conv1", out = 8, kernel = 2, init = "whitening", frozen = ["weight"] },
  { batch_norm2d = "bn1" },
  { relu = "relu1" },
  { conv2d = "conv2", out = 8, kernel = 3, padding = 1, groups = 4 },
  { batch_norm2d = "bn2" },
  { add = "add", inputs = ["bn2", "relu1"] },
  { gelu = "gelu" },
  { max_pool2d = "pool", kernel = 3, stride = 2, padding = 1 },
  { global_avg_pool2d = "avgpool" },
  { flatten = "flatten" },
  { linear = "fc", out = "classes", init = "unit_variance" },
])";
  const Words words = {"bench",
                       "compare",
                       "--dataset",
                       "mnist",
                       "--data-dir",
                       "data",
                       "--model",
                       "net.toml",
                       "--steps",
                       "3",
                       "--rounds",
                       "1",
                       "--nprocs",
                       "1",
                       "--threads",
                       "2",
                       "--batch-size",
                       "8",
                       "-J",
                       "bench.json",
                       "--memory-format",
                       "channels_last"};
  const ProgramEnd end = place.run(words, {{"GRADRING_PYTHON", *search.python}});
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("1 rank x 2 threads x batch 8"));
  const auto table = json_of(place);
  EXPECT_EQ(table.at("model"), "net.toml");
  const auto& contenders = table.at("cases").at(0).at("contenders");
  EXPECT_NEAR(contenders.at(0).at("loss").get<double>(), contenders.at(1).at("loss").get<double>(), 1e-4);
}

TEST(BenchCompare, NeedsAsManySamplesAsABatchHas) {
  const Workplace place;
  Words words = kShortComparison;
  words.insert(words.end(), {"--batch-size", "65"});
  const ProgramEnd end = place.run(words, {{"PATH", "/nowhere"}});
  EXPECT_EQ(end.code, 2);
  EXPECT_THAT(end.err, HasSubstr("mnist has 64 training samples"));
}

TEST(BenchCompare, MeasuresOnlyUsWhereThereIsNoPyTorch) {
  const Workplace place;
  const ProgramEnd end = place.run(kShortComparison, {{"PATH", "/nowhere"}});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("no Python that imports torch"), HasSubstr("median   gradring"),
                             Not(HasSubstr("median   PyTorch"))));
  EXPECT_THAT(place.left(), IsEmpty());
}

TEST(BenchLaunch, MeasuresOurLauncherAndWhatItFindsBesideIt) {
  const tests::Workplace place;
  const auto end = place.run({"bench", "launch", "--nprocs", "3", "--rounds", "2", "-J", "table.json"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("3 workers, 2 rounds"));
  const auto table = tests::parse_json(tests::text_of(place.path("table.json")));
  EXPECT_EQ(table.at("benchmark"), "launch");
  EXPECT_EQ(table.at("workers"), 3);
  EXPECT_EQ(table.at("rows").at(0).at("name"), "gradring launch");
  for (const auto& row : table.at("rows")) EXPECT_EQ(row.at("seconds").at("count"), 2);
  EXPECT_THAT(place.left(), ElementsAre("table.json"));
}

TEST(BenchLaunch, RejectsWhatItCannotMeasure) {
  const tests::Workplace place;
  EXPECT_EQ(place.run({"bench", "launch", "--nprocs", "0"}).code, 2);
  EXPECT_EQ(place.run({"bench", "launch", "--round", "3"}).code, 2);
}

TEST(BenchLoader, MeasuresFillingAndTheLoader) {
  const tests::Workplace place;
  const auto end = place.run({"bench", "loader", "--dataset", "mnist", "--data-dir", "data", "--batch-size", "5",
                              "--epochs", "3", "-J", "table.json"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("commit"), HasSubstr("64 samples of [28, 28, 1], batch 5, 3 shuffled epochs")));
  const auto table = tests::parse_json(tests::text_of(place.path("table.json")));
  EXPECT_EQ(table.at("benchmark"), "loader");
  EXPECT_EQ(table.at("samples"), 64);
  ASSERT_EQ(table.at("rows").size(), 2);
  EXPECT_EQ(table.at("rows").at(0).at("name"), "fill");
  EXPECT_EQ(table.at("rows").at(1).at("name"), "loader");
  for (const auto& row : table.at("rows")) {
    EXPECT_EQ(row.at("epoch_seconds").at("count"), 3);
    EXPECT_GT(row.at("samples_per_second_per_core"), 0);
  }
}

TEST(BenchLoader, MeasuresAugmentationAndThreads) {
  const tests::Workplace place;
  const auto end = place.run({"bench", "loader", "--dataset", "mnist", "--data-dir", "data", "--batch-size", "5",
                              "--epochs", "2", "--augment", "flip,crop=2,mixup=0.2", "--threads", "3", "-J", "t.json"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("augmentation crop=2,flip,mixup=0.2"));
  const auto table = tests::parse_json(tests::text_of(place.path("t.json")));
  EXPECT_EQ(table.at("threads"), 3);
  EXPECT_EQ(table.at("augment"), "crop=2,flip,mixup=0.2");
}

TEST(BenchLoader, RejectsWhatItCannotMeasure) {
  const tests::Workplace place;
  EXPECT_EQ(place.run({"bench", "loader", "--epochs", "0"}).code, 2);
  EXPECT_EQ(place.run({"bench", "loader", "--augment", "flp"}).code, 2);
  EXPECT_EQ(place.run({"bench", "loader", "--dataset", "mnits"}).code, 2);
  EXPECT_EQ(place.run({"bench", "loader", "--dataset", "cifar10", "--data-dir", "data"}).code, 4);
}

TEST(BenchRestart, KillsRanksAndTellsHowLongItTookToGoOn) {
  const tests::Workplace place;
  const auto end = place.run({"bench", "restart", "--nprocs", "2", "--rounds", "2", "--seed", "3", "-J", "table.json"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, testing::HasSubstr("2 ranks, 2 crashes, seed 3"));
  const auto table = tests::parse_json(tests::text_of(place.path("table.json")));
  EXPECT_EQ(table.at("benchmark"), "restart");
  EXPECT_EQ(table.at("rows").at(1).at("name"), "to the first step");
  for (const auto& row : table.at("rows")) EXPECT_EQ(row.at("seconds").at("count"), 2);
  const auto& rows = table.at("rows");
  EXPECT_LE(rows.at(0).at("seconds").at("least"), rows.at(1).at("seconds").at("least"));
}

TEST(BenchRestart, RejectsWhatItCannotMeasure) {
  const tests::Workplace place;
  EXPECT_EQ(place.run({"bench", "restart", "--nprocs", "0"}).code, 2);
  EXPECT_EQ(place.run({"bench", "restart", "--round", "3"}).code, 2);
}

}  // namespace
}  // namespace gradring
