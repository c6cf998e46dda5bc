// SPDX-License-Identifier: Apache-2.0
#include "train/core/config/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>

#include "tests/data/support/message_of.h"
#include "tests/support/temp_folder.h"
#include "train/core/config/presets.h"
#include "train/options/usage_error.h"
#include "train/records/metrics/progress.h"

namespace gradring::train {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using tests::message_of;

class Resolve : public ::testing::Test {
 protected:
  /// Writes a config file and returns its path.
  std::string file(const std::string& text, const std::string& name = "F.toml") const {
    return folder_.write(name, std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size())).string();
  }
  /// What is said about a config file with this text.
  std::string refusal(const std::string& text) const {
    return message_of<UsageError>([&] { resolve({}, {}, file(text)); });
  }

  tests::TempFolder folder_;
};

TEST_F(Resolve, GivesTheDefaultsIfNobodySaysAnything) {
  const ResolvedConfig resolved = resolve({}, {}, std::nullopt);
  EXPECT_EQ(resolved.config.batch_size, TrainConfig().batch_size);
  for (const TrainOption& option : train_options()) EXPECT_EQ(resolved.sources.at(option.name), "default");
}

TEST_F(Resolve, WaitsLongerForSimulatedGpusUnlessToldOtherwise) {
  using namespace std::chrono_literals;
  const OptionTexts simulated = {{"device", "cuda"}, {"simulate-gpu", "h100"}};
  EXPECT_EQ(resolve({}, {}, std::nullopt).config.timeout, 30s);
  EXPECT_EQ(resolve(simulated, {}, std::nullopt).config.timeout, 60min);
  EXPECT_EQ(resolve(simulated, {{"GRADRING_TIMEOUT", "5s"}}, std::nullopt).config.timeout, 5s);
}

TEST_F(Resolve, ExpandsHomeInPathsOfFilesAndVariables) {
  const std::string home = system_variable("HOME").value_or("");
  if (home.empty()) GTEST_SKIP() << "HOME is not set";
  const TrainConfig config = resolve({}, {{"GRADRING_DATA_DIR", "~/d"}, {"GRADRING_RESUME", "~/r/step-1"}},
                                     file("run-dir = \"~/r\"\ntrace = \"~/t.json\"\nname = \"~n\"\n"))
                                 .config;
  EXPECT_EQ(config.data_dir, home + "/d");
  EXPECT_EQ(config.resume, home + "/r/step-1");
  EXPECT_EQ(config.run_dir, home + "/r");
  EXPECT_EQ(config.trace, home + "/t.json");
  EXPECT_EQ(config.name, "~n") << "no path";
  EXPECT_THAT(refusal("\nrun-dir = \"~else/r\"\n"), HasSubstr("F.toml:2: --run-dir is '~else/r': "));
}

TEST_F(Resolve, TheCommandLineWinsThenTheEnvironmentThenTheFile) {
  const std::string path = file("batch-size = 1\nlr = 0.1\nseed = 1\n");
  const ResolvedConfig resolved =
      resolve({{"batch-size", "3"}}, {{"GRADRING_BATCH_SIZE", "2"}, {"GRADRING_LR", "0.2"}}, path);
  EXPECT_EQ(resolved.config.batch_size, 3);
  EXPECT_EQ(resolved.config.learning_rate, 0.2);
  EXPECT_EQ(resolved.config.seed, 1u);
  EXPECT_EQ(resolved.sources.at("batch-size"), "command line");
  EXPECT_EQ(resolved.sources.at("lr"), "GRADRING_LR");
  EXPECT_EQ(resolved.sources.at("seed"), path + ":3");
  EXPECT_EQ(resolved.sources.at("model"), "default");
}

TEST_F(Resolve, EverySourceOverridesThePreset) {
  const std::string path = file("lr = 0.1\n");
  const ResolvedConfig resolved = resolve({{"preset", "cifar10-94"}, {"data-dir", "data"}, {"batch-size", "500"}},
                                          {{"GRADRING_EPOCHS", "2"}}, path);
  EXPECT_EQ(resolved.config.model, "airbench94");
  EXPECT_EQ(resolved.config.batch_size, 500);
  EXPECT_EQ(resolved.config.epochs, 2);
  EXPECT_EQ(resolved.config.learning_rate, 0.1);
  EXPECT_THAT(resolved.sources.at("model"), StartsWith("preset cifar10-94:"));
  EXPECT_EQ(resolved.sources.at("batch-size"), "command line");
  EXPECT_EQ(resolved.sources.at("epochs"), "GRADRING_EPOCHS");
  EXPECT_EQ(resolved.sources.at("lr"), path + ":1");
}

TEST_F(Resolve, APresetIsNamedInAnySource) {
  const Variables variables = {{"GRADRING_PRESET", "cifar10-94"}, {"GRADRING_DATA_DIR", "data"}};
  EXPECT_EQ(resolve({}, variables, std::nullopt).config.model, "airbench94");
  const std::string path = file("preset = \"cifar10-94\"\ndata-dir = \"data\"\n");
  EXPECT_EQ(resolve({}, {}, path).config.model, "airbench94");
  EXPECT_EQ(resolve({{"preset", ""}}, variables, std::nullopt).config.model, "convnet");
  EXPECT_THAT(message_of<UsageError>([] {
                resolve({{"preset", "cifar10-49"}}, {}, std::nullopt);
              }),
              AllOf(HasSubstr("--preset is 'cifar10-49'"), HasSubstr("Did you mean 'cifar10-94'?")));
}

TEST_F(Resolve, EveryPresetIsAConfigFileWithAHead) {
  for (const std::string_view name : preset_names()) {
    const OptionTexts data = {{"data-dir", "data"}};
    OptionTexts named = data;
    named["preset"] = name;
    const TrainConfig of_file = resolve(data, {}, file(std::string(preset_text(name)))).config;
    const TrainConfig by_name = resolve(named, {}, std::nullopt).config;
    for (const TrainOption& option : train_options()) {
      if (option.name == "preset") continue;
      EXPECT_EQ(option.show(by_name), option.show(of_file)) << option.name;
    }
    EXPECT_THAT(list_of_presets(), HasSubstr(std::string(name) + "\n  "));
  }
}

TEST_F(Resolve, PrintConfigShowsEveryOptionWithItsSource) {
  const std::string text = print_config(resolve({{"lr", "0.5"}}, {{"GRADRING_PROGRESS", "none"}}, file("steps = 7\n")));
  EXPECT_THAT(text, HasSubstr("lr = 0.5 "));
  EXPECT_THAT(text, HasSubstr("# command line\n"));
  EXPECT_THAT(text, HasSubstr("# GRADRING_PROGRESS\n"));
  EXPECT_THAT(text, HasSubstr("F.toml:1\n"));
  EXPECT_EQ(std::ranges::count(text, '\n'), std::ssize(train_options()));
  EXPECT_EQ(resolve({}, {}, file(text, "printed.toml")).config.steps, 7) << "the text is TOML itself";
}

TEST_F(Resolve, AFileMayUseEitherSpellingButNotBoth) {
  EXPECT_EQ(resolve({}, {}, file("batch_size = 5")).config.batch_size, 5);
  EXPECT_THAT(refusal("batch-size = 5\nbatch_size = 6\n"), HasSubstr("F.toml:2: 'batch_size' is set twice"));
}

TEST_F(Resolve, ReadsEveryKindOfTomlValue) {
  const auto config = resolve({}, {}, file("lr = 1\nmomentum = 9e-1\noptimizer = 'sgd'\nnesterov = true\n")).config;
  EXPECT_EQ(config.learning_rate, 1);
  EXPECT_EQ(config.optimizer.momentum, 0.9);
  EXPECT_TRUE(config.optimizer.nesterov);
}

TEST_F(Resolve, NamesTheLineAndTheNearestKey) {
  EXPECT_THAT(refusal("\n\nbatch-sise = 3\n"),
              EndsWith("F.toml:3: 'batch-sise' is not an option. Did you mean 'batch-size'?"));
  EXPECT_THAT(refusal("[a-section]\nlr = 1\n"), EndsWith("F.toml:1: 'a-section' is not an option."));
}

TEST_F(Resolve, NamesTheLineOfAWrongValue) {
  EXPECT_THAT(refusal("lr = 1\nbatch-size = 0\n"), HasSubstr("F.toml:2: --batch-size is '0', but must be"));
  EXPECT_THAT(refusal("lr = [1, 2]\n"),
              HasSubstr("F.toml:1: 'lr' has a value of another type: expected a string, a number, true or false"));
  EXPECT_THAT(refusal("lr = inf\n"), HasSubstr("--lr is 'inf'"));
}

TEST_F(Resolve, NamesTheLineOfBadToml) {
  EXPECT_THAT(refusal("lr = 1\nsteps = = 2\n"), HasSubstr("F.toml:2: invalid TOML: "));
  EXPECT_THAT(refusal("lr = 1\nlr = 2\n"), HasSubstr("F.toml:2: invalid TOML: "));
}

TEST_F(Resolve, RejectsAFileThatIsNone) {
  EXPECT_THAT(message_of<UsageError>([] { resolve({}, {}, "/no/such/file.toml"); }),
              HasSubstr("--config: /no/such/file.toml cannot be opened (No such file or directory)"));
  EXPECT_THAT(message_of<UsageError>([&] { resolve({}, {}, folder_.path().string()); }),
              HasSubstr("cannot be read (Is a directory)"));
}

TEST_F(Resolve, RejectsAFileWithoutEnd) {
  EXPECT_THAT(message_of<UsageError>([] { resolve({}, {}, "/dev/zero"); }),
              HasSubstr("--config: /dev/zero is larger than 1048576 bytes"));
}

TEST_F(Resolve, AnEmptyFileSaysNothing) { EXPECT_EQ(resolve({}, {}, file("# later\n")).config.steps, 0); }

TEST_F(Resolve, NamesTheVariableOfAWrongValue) {
  EXPECT_THAT(message_of<UsageError>([] {
                resolve({}, {{"GRADRING_LR", "fast"}}, {});
              }),
              StartsWith("GRADRING_LR: --lr is 'fast', but must be"));
}

TEST_F(Resolve, RejectsVariablesThatAreNearlyRight) {
  EXPECT_THAT(message_of<UsageError>([] {
                resolve({}, {{"GRADRING_BATCHSIZE", "8"}}, {});
              }),
              AllOf(StartsWith("GRADRING_BATCHSIZE "), HasSubstr("Did you mean 'GRADRING_BATCH_SIZE'?")));
}

/// The variables that the scripts read; every program that the scripts start inherits them.
TEST_F(Resolve, LeavesTheScriptsVariablesAlone) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(GRADRING_SOURCE_DIR "/scripts")) {
    if (entry.path().extension() != ".sh") continue;
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::regex read(R"(\$\{(GRADRING_[A-Z_]+)[-:])");
    for (std::sregex_iterator match(text.begin(), text.end(), read), end; match != end; ++match)
      names.insert((*match)[1]);
  }
  EXPECT_THAT(names, ::testing::IsSupersetOf({"GRADRING_CUDA", "GRADRING_MAINTAINER", "GRADRING_TEST_PYTHON"}));
  for (const std::string& name : names) EXPECT_NO_THROW(resolve({}, {{name, "ON"}}, {})) << name;
}

TEST_F(Resolve, RejectsVariablesOfCommandLineOptions) {
  for (const std::string name : {"CONFIG", "PRINT_CONFIG", "DRY_RUN"})
    EXPECT_THAT(message_of<UsageError>([&] {
                  resolve({}, {{"GRADRING_" + name, "1"}}, {});
                }),
                AllOf(StartsWith("GRADRING_" + name + " "), HasSubstr("is accepted on the command line only")));
}

TEST_F(Resolve, LeavesOtherPeoplesVariablesAlone) {
  EXPECT_NO_THROW(resolve(
      {},
      {{"GRADRING_STORE", "/x"}, {"GRADRING_PROGRESS_FILE", "/y"}, {"GRADRING_FRESH_NAMESPACE", "1"}, {"LR", "fast"}},
      {}));
}

TEST_F(Resolve, RejectsAnEmptyRunDirectoryButTakesThatOfPrintConfig) {
  EXPECT_THAT(message_of<UsageError>([] {
                resolve({{"run-dir", ""}, {"resume", "auto"}}, {}, {});
              }),
              StartsWith("--run-dir is empty: give the path of a directory, or leave it out"));
  EXPECT_THAT(message_of<UsageError>([] {
                resolve({}, {{"GRADRING_RUN_DIR", ""}}, {});
              }),
              StartsWith("GRADRING_RUN_DIR is empty: "));
  EXPECT_EQ(resolve({}, {}, file("run-dir = \"\"\n")).config.run_dir, "");
  EXPECT_EQ(resolve({{"run-dir", "r"}}, {{"GRADRING_RUN_DIR", ""}}, {}).config.run_dir, "r");
}

TEST_F(Resolve, StepsAloneDecideWhereEpochsAreNotGiven) {
  EXPECT_EQ(resolve({{"steps", "9"}}, {}, {}).config.epochs, 0);
  EXPECT_EQ(resolve({{"steps", "9"}, {"epochs", "2"}}, {}, {}).config.epochs, 2);
  EXPECT_EQ(resolve({{"steps", "0"}}, {}, {}).config.epochs, TrainConfig().epochs);
}

TEST_F(Resolve, RejectsValuesThatDoNotFitEachOther) {
  const auto refuse = [](const OptionTexts& options) {
    return message_of<UsageError>([&] { resolve(options, {}, std::nullopt); });
  };
  EXPECT_THAT(refuse({{"epochs", "0"}}), HasSubstr("--epochs or --steps must be positive"));
  EXPECT_THAT(refuse({{"momentum", "0.9"}}), HasSubstr("require --optimizer sgd, sgdw or muon, found adam"));
  EXPECT_THAT(refuse({{"optimizer", "sgdw"}, {"betas", "0.8,0.99"}}),
              HasSubstr("require --optimizer adam or adamw, found sgdw"));
  EXPECT_THAT(refuse({{"muon-steps", "3"}}), HasSubstr("require --optimizer muon"));
  EXPECT_THAT(refuse({{"label-smoothing", "1"}}), HasSubstr("--label-smoothing must be below 1"));
  EXPECT_THAT(refuse({{"betas", "0.9"}}), HasSubstr("must be two numbers, such as 0.9,0.999"));
  EXPECT_THAT(refuse({{"betas", "0.9,1"}}), HasSubstr("must be two numbers below 1"));
  EXPECT_THAT(refuse({{"optimizer", "sgd"}, {"nesterov", "true"}}), HasSubstr("--nesterov needs a --momentum"));
  EXPECT_THAT(refuse({{"dataset", "mnist"}}), HasSubstr("--data-dir"));
  for (const char* option : {"data-dir", "resume", "weights"})
    EXPECT_THAT(refuse({{option,
                         "donn\xe9"
                         "es"}}),
                HasSubstr(std::string("--") + option + " is not UTF-8"));
  EXPECT_THAT(refuse({{"dataset", "mnits"}}), EndsWith("Did you mean 'mnist'?"));
  EXPECT_THAT(refuse({{"simulate-gpu", "H100"}}), EndsWith("Did you mean 'h100'?"));
  EXPECT_THAT(refuse({{"zero", "1"}, {"allreduce", "direct"}}), HasSubstr("leave out --allreduce direct"));
  EXPECT_THAT(refuse({{"zero", "1"}, {"sync-every-pass", "true"}}), HasSubstr("or use --zero 2 or 3"));
  EXPECT_THAT(refuse({{"weights", "w.pt"}, {"optimizer-state", "o.pt"}, {"group", "fc_layers.*:epochs=1"}}),
              HasSubstr("but epochs in --group count from step 0"));
  EXPECT_THAT(message_of<InvalidArgument>([] {
                resolve({{"group", "*:frozen"}}, {}, {});
              }),
              EndsWith("every parameter of the model is frozen: leave some to train"));
  EXPECT_THAT(refuse({{"device", "gpu"}}), HasSubstr("unknown device 'gpu'"));
  EXPECT_THAT(refuse({{"augment", "flip,crops=4"}}),
              AllOf(HasSubstr("--augment: unknown augmentation 'crops=4'"), EndsWith("Did you mean 'crop'?")));
  EXPECT_THAT(message_of<InvalidArgument>([] {
                resolve({{"augment", "crop=28"}}, {}, {});
              }),
              HasSubstr("augmentation 'crop=28' for images of 28 x 28 pixels: "));
}

std::string changes(std::string_view before, const TrainConfig& given, const TrainConfig& resolved) {
  const auto found = changed_options(before, given, resolved);
  return found ? to_string(*found) : "unknown";
}

TEST(ChangedOptions, AreNamedWithTheirOldAndNewValues) {
  TrainConfig before, now;
  now.epochs = 3;
  now.learning_rate = 0.002;
  now.data_dir = "else where";
  now.optimizer.nesterov = true;
  EXPECT_EQ(changes(to_toml(before), now, now),
            "data-dir \"\" -> else where, epochs 2 -> 3, lr 0.001 -> 0.002, nesterov false -> true");
  EXPECT_EQ(changes(to_resolved_toml(now), now, now), "");
}

TEST(ChangedOptions, AreUnknownWithoutReadableSettings) {
  for (const char* text : {"", "half a fi", "epochs = [", "# only a comment\n"})
    EXPECT_EQ(changes(text, TrainConfig(), TrainConfig()), "unknown") << text;
}

TEST(ChangedOptions, DoNotIncludeWhereARunStartsAndHowItIsShown) {
  TrainConfig now;
  now.resume = "auto";
  now.weights = "w.pt";
  now.run_dir = "run";
  now.nprocs = 4;
  now.progress = ProgressStyle::bar;
  EXPECT_EQ(changes(to_toml(TrainConfig()), now, now), "");
}

/// A run that began with --threads 0 on 4 cores has `threads = 4` in its config, or 0 if an older version wrote it.
TEST(ChangedOptions, AreNotWhatAutoStandsFor) {
  TrainConfig given, resolved;
  resolved.device = "cpu";
  resolved.threads = 4;
  EXPECT_EQ(changes(to_toml(given), given, resolved), "");
  EXPECT_EQ(changes(to_toml(resolved), given, resolved), "");
  resolved.threads = 2;
  EXPECT_EQ(changes("threads = 4\n", given, resolved), "threads 4 -> 2");
}

TEST(ChangedOptions, PassOverWhatAnotherVersionWrote) {
  const TrainConfig now{.epochs = 3};
  EXPECT_EQ(changes("# a comment\nwarp = 9\nepochs = \"many\"\nseed = 7\n", now, now), "epochs 2 -> 3, seed 7 -> 0");
  EXPECT_EQ(changes("not TOML", now, now), "unknown");
}

}  // namespace
}  // namespace gradring::train
