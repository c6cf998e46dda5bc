// SPDX-License-Identifier: Apache-2.0
// Help texts, manual pages and completions of every command, all made of the option tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/train/app/commands/support/workplace.h"

namespace gradring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using tests::ProgramEnd;
using tests::Words;
using tests::Workplace;

class HelpTexts : public testing::Test {
 protected:
  std::string printed(const Words& words) const {
    const ProgramEnd end = place_.run(words);
    EXPECT_EQ(end.code, 0) << testing::PrintToString(words) << end.err;
    return end.out;
  }

  /// The names that a list of commands shows: the first word of lines that are indented by two.
  std::vector<std::string> listed_by(const Words& words) const {
    std::vector<std::string> names;
    std::istringstream lines(printed(words));
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("  ") && line[2] != ' ') names.push_back(line.substr(2, line.find(' ', 2) - 2));
    return names;
  }

  /// {"train"}, {"bench", "step"}, ...
  std::vector<Words> commands() const {
    std::vector<Words> all;
    for (const std::string& name : listed_by({"help"})) {
      all.push_back({name});
      if (name != "bench" && name != "ckpt" && name != "cuda" && name != "data") continue;
      for (const std::string& action : listed_by({"help", name})) all.push_back({name, action});
    }
    return all;
  }

  static Words with(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  /// Runs a shell script in the folder; `file` holds the completion script of that shell.
  ProgramEnd run_shell(const std::string& shell, const std::string& script) const {
    const std::string text = printed({"completions", shell});
    place_.folder().write("completions", tests::Bytes(text.begin(), text.end()));
    return tests::run_program(
        {.command = {"/usr/bin/env", shell, "-c", script}, .folder = place_.folder().path(), .variables = {}});
  }

  bool has(const std::string& program) const {
    return tests::run_program({.command = {"/bin/sh", "-c", "command -v " + program},
                               .folder = place_.folder().path(),
                               .variables = {}})
               .code == 0;
  }

  Workplace place_;
};

TEST_F(HelpTexts, KnowsEveryCommand) {
  const std::vector<Words> all = commands();
  EXPECT_GE(all.size(), 25u);
  for (const Words& command : all) {
    const std::string help = printed(with({"help"}, command));
    EXPECT_EQ(printed(with(command, {"--help"})), help);
    EXPECT_THAT(help, HasSubstr("gradring " + command.front()));
  }
  EXPECT_EQ(place_.run({"help", "trian"}).code, 2);
  EXPECT_THAT(place_.run({"help", "bench", "lodaer"}).err, HasSubstr("Did you mean 'loader'?"));
}

TEST_F(HelpTexts, FitsIn80Columns) {
  for (const Words& command : commands()) {
    std::istringstream lines(printed(with({"help"}, command)));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 80u) << testing::PrintToString(command) << ": " << line;
      EXPECT_THAT(line, Not(testing::EndsWith(" "))) << testing::PrintToString(command) << ": " << line;
    }
  }
}

TEST_F(HelpTexts, OfTrainIsGrouped) {
  const std::string help = printed({"help", "train"});
  for (const char* group : {"Data", "Model", "Optimization", "Precision", "Parallelism", "Communication", "Checkpoints",
                            "Output", "Devices", "General"})
    EXPECT_THAT(help, HasSubstr(std::string("\n") + group + ":\n"));
}

TEST_F(HelpTexts, IsAManualPageWithoutWarnings) {
  const bool has_man = has("man");
  for (const Words& command : commands()) {
    const std::string page = printed(with({"help", "--man"}, command));
    EXPECT_THAT(page, testing::StartsWith(".TH GRADRING\\-"));
    for (const char* section : {"\n.SH NAME\n", "\n.SH OPTIONS\n"}) EXPECT_THAT(page, HasSubstr(section));
    if (!has_man) continue;
    place_.folder().write("page.1", tests::Bytes(page.begin(), page.end()));
    const ProgramEnd end = tests::run_program({.command = {"/usr/bin/env", "man", "--warnings", "-l", "page.1"},
                                               .folder = place_.folder().path(),
                                               .variables = {{"MANWIDTH", "80"}, {"LC_ALL", "C.UTF-8"}}});
    EXPECT_EQ(end.code, 0) << testing::PrintToString(command);
    EXPECT_THAT(end.err, IsEmpty()) << testing::PrintToString(command);
  }
  if (!has_man) GTEST_SKIP() << "man is not installed: the pages were not rendered";
}

TEST_F(HelpTexts, VersionNamesTheCommit) {
  const auto is_version = MatchesRegex("gradring [0-9.]+ \\(commit [0-9a-z-]+\\)\n");
  EXPECT_THAT(printed({"version"}), is_version);
  EXPECT_THAT(printed({"--version"}), is_version);
}

class Completions : public HelpTexts {
 protected:
  /// What bash offers for the last of `words`.
  std::string offered(const std::string& words) const {
    const ProgramEnd end = run_shell("bash", "source ./completions; COMP_WORDS=(" + words +
                                                 "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _gradring; "
                                                 "echo \"${COMPREPLY[@]}\"");
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_THAT(end.err, IsEmpty());
    return end.out;
  }
};

TEST_F(Completions, OfBashOfferCommandsOptionsAndChoices) {
  EXPECT_EQ(run_shell("bash", "bash -n completions").code, 0);
  EXPECT_EQ(offered("gradring tr"), "train trace\n");
  EXPECT_EQ(offered("gradring bench lo"), "loader\n");
  EXPECT_EQ(offered("gradring train --batch"), "--batch-size\n");
  EXPECT_EQ(offered("gradring train --wire-dtype ''"), "fp32 fp16 bf16\n");
  EXPECT_EQ(offered("gradring train --data-dir da"), "data\n");
  EXPECT_EQ(offered("gradring train --lr ''"), "\n");
  EXPECT_EQ(offered("gradring launch --nproc-per-node 2 train --model ''"),
            "convnet convnet-deep lenet5 resnet18 resnet18-cifar airbench94\n");
  EXPECT_EQ(offered("gradrun --rdzv-b"), "--rdzv-backend\n");
  EXPECT_THAT(offered("gradring ckpt ''"), AllOf(HasSubstr("ls "), HasSubstr("prune ")));
}

TEST_F(Completions, OfZshAreValid) {
  if (!has("zsh")) GTEST_SKIP() << "zsh is not installed";
  const ProgramEnd end = run_shell("zsh", "zsh -n ./completions");
  EXPECT_EQ(end.code, 0) << end.err;
  const ProgramEnd offered = run_shell(
      "zsh",
      "compadd() { print -r -- $@ }; _files() { print files }; words=(gradring train --wire-dtype ''); CURRENT=4; "
      "source ./completions");
  EXPECT_EQ(offered.out, "-- fp32 fp16 bf16\n") << offered.err;
}

TEST_F(Completions, OfFishAreValid) {
  if (!has("fish")) GTEST_SKIP() << "fish is not installed";
  const ProgramEnd end = run_shell("fish", "fish --no-execute completions");
  EXPECT_EQ(end.code, 0) << end.err;
  const ProgramEnd offered = run_shell(
      "fish", "source completions; complete -C 'gradring train --wire-dtype '; complete -C 'gradring ckpt pr'");
  EXPECT_THAT(offered.out, AllOf(HasSubstr("fp16"), HasSubstr("prune"))) << offered.err;
}

TEST_F(Completions, ExistForThreeShells) {
  const ProgramEnd end = place_.run({"completions", "basch"});
  EXPECT_EQ(end.code, 2);
  EXPECT_THAT(end.err, HasSubstr("Did you mean 'bash'?"));
  EXPECT_EQ(place_.run({"completions"}).code, 2);
}

}  // namespace
}  // namespace gradring
