// SPDX-License-Identifier: Apache-2.0
#include "train/app/commands/train_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/data/support/message_of.h"
#include "train/options/help.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using Words = std::vector<std::string>;

ParsedTrain parse(const Words& words) { return parse_train(words); }

std::string train_refusal(const Words& words) {
  return tests::message_of<UsageError>([&] { parse_train(words); });
}

TEST(ParseTrain, TakesNothing) { EXPECT_THAT(parse({}).options, IsEmpty()); }

TEST(ParseTrain, TakesValuesBehindOrAttached) {
  EXPECT_THAT(
      parse({"--lr", "0.1", "--batch-size=8", "--data-dir=", "--run-dir=a=b"}).options,
      UnorderedElementsAre(Pair("lr", "0.1"), Pair("batch-size", "8"), Pair("data-dir", ""), Pair("run-dir", "a=b")));
}

TEST(ParseTrain, TakesAnyTextAsAValueButAnOption) {
  EXPECT_THAT(parse({"--lr", "-1", "--data-dir", "[a,b]", "--run-dir=--x"}).options,
              UnorderedElementsAre(Pair("lr", "-1"), Pair("data-dir", "[a,b]"), Pair("run-dir", "--x")));
}

TEST(ParseTrain, TakesBothSpellingsAndTheLastOfAName) {
  EXPECT_THAT(parse({"--batch_size", "8", "--batch-size", "9"}).options, UnorderedElementsAre(Pair("batch-size", "9")));
}

TEST(ParseTrain, TakesSeveralFaults) {
  EXPECT_THAT(parse({"--inject", "a", "--inject=b"}).options, UnorderedElementsAre(Pair("inject", "a;b")));
}

TEST(ParseTrain, TakesFlagsWithAndWithoutAValue) {
  EXPECT_THAT(parse({"--nesterov", "--lr", "1"}).options,
              UnorderedElementsAre(Pair("nesterov", "true"), Pair("lr", "1")));
  EXPECT_THAT(parse({"--nesterov", "--nesterov=false"}).options, UnorderedElementsAre(Pair("nesterov", "false")));
}

TEST(ParseTrain, HelpNamesTheOptionsThatAResumeTreatsOtherwise) {
  ParsedTrain parsed;
  std::string help = help_of(command_line(parsed));
  std::ranges::replace(help, '\n', ' ');
  EXPECT_THAT(help, HasSubstr("A resume takes the options that it is given: one that is not repeated has its default "
                              "again, not the value of the run."));
  EXPECT_THAT(help, HasSubstr("holds what became of them: --weights, --reinit, --optimizer-state, --loss-scale."));
  EXPECT_THAT(
      help,
      HasSubstr("the resume is rejected: --image-size, --normalize, --val-split, --stratify, --model, --optimizer, "
                "--momentum, --group, --ema; within an epoch also: --dataset, --batch-size, "
                "--global-batch, --seed; with --reproducible, if they give other "
                "bits: --shard-size, --accumulate, --global-batch, --precision, --device, --simulate-gpu, "
                "--backend, --conv, --gemm, --autotune, --threads."));
}

TEST(ParseTrain, TakesWhatIsNoOptionOfARun) {
  const ParsedTrain parsed = parse({"--config", "F.toml", "--print-config", "--dry-run"});
  EXPECT_EQ(parsed.config_file, "F.toml");
  EXPECT_TRUE(parsed.print_config);
  EXPECT_TRUE(parsed.dry_run);
  EXPECT_FALSE(parsed.help);
  EXPECT_TRUE(parse({"--help"}).help);
  EXPECT_TRUE(parse({"-h"}).help);
}

TEST(ParseTrain, NamesTheNearestOption) {
  EXPECT_EQ(train_refusal({"--batch-sise", "3"}),
            "unknown option --batch-sise. Did you mean '--batch-size'? See gradring train --help");
  EXPECT_EQ(train_refusal({"--dryrun"}),
            "unknown option --dryrun. Did you mean '--dry-run'? See gradring train --help");
  EXPECT_EQ(train_refusal({"--quux=3"}), "unknown option --quux. See gradring train --help");
}

TEST(ParseTrain, RejectsWhatIsNoOption) {
  EXPECT_THAT(train_refusal({"mnist"}), HasSubstr("unexpected argument 'mnist': options begin with --"));
  for (const char* word : {"", "--"}) EXPECT_THAT(train_refusal({word}), HasSubstr("unexpected argument")) << word;
  for (const char* word : {"-", "-b", "-lr=1"})
    EXPECT_THAT(train_refusal({word}), HasSubstr("unknown option -")) << word;
}

TEST(ParseTrain, RejectsAMissingValueAndOneTooMany) {
  EXPECT_THAT(train_refusal({"--lr"}), HasSubstr("--lr needs a value"));
  EXPECT_THAT(train_refusal({"--lr", "--seed", "1"}), HasSubstr("--lr needs a value"));
  EXPECT_THAT(train_refusal({"--config"}), HasSubstr("--config needs a value"));
  EXPECT_THAT(train_refusal({"--dry-run=1"}), HasSubstr("--dry-run takes no value"));
}

std::string train_help() {
  ParsedTrain unused;
  return help_of(command_line(unused));
}

TEST(TrainHelp, NamesEveryOption) {
  const std::string help = train_help();
  for (const TrainOption& option : train_options()) EXPECT_THAT(help, HasSubstr("  --" + option.name)) << option.name;
  for (const char* option : {"--config FILE.toml", "--print-config", "--dry-run", "--help"})
    EXPECT_THAT(help, HasSubstr(option));
  EXPECT_THAT(help, HasSubstr("samples per rank and micro-batch (default 64)"));
}

TEST(TrainHelp, IsGrouped) {
  const std::string help = train_help();
  std::size_t before = 0;
  for (const char* group : {"Data", "Model", "Optimization", "Precision", "Parallelism", "Communication", "Checkpoints",
                            "Output", "Devices", "General"}) {
    const std::size_t at = help.find(std::string("\n") + group + ":\n");
    ASSERT_NE(at, std::string::npos) << group;
    EXPECT_GT(at, before) << group;
    before = at;
  }
}

}  // namespace
}  // namespace gradring::train
