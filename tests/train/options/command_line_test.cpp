// SPDX-License-Identifier: Apache-2.0
#include "train/options/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/support/message_of.h"
#include "train/options/environment_variable.h"
#include "train/options/help.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

/// A command with a lettered option, a flag, and words where they are wanted.
struct Probe {
  std::string size = "8";
  std::string check = "none";
  bool takes_words = false, ends_at_word = false;

  CommandWords read(const Words& args) { return read_command_line(line(), args); }
  CommandLine line() {
    return {
        .command = "gradring probe", .options = options(), .takes_words = takes_words, .ends_at_word = ends_at_word};
  }
  std::vector<Option> options() {
    return {{.name = "min-bytes", .letter = 'b', .value = "N", .help = "smallest size (default 8)", .read = into(size)},
            {.name = "check", .help = "verification of the result", .read = into(check)}};
  }
  static std::function<void(std::string_view)> into(std::string& field) {
    return [&field](std::string_view text) { field = std::string(text); };
  }
};

std::string probe_refusal(const Words& args, bool takes_words = false) {
  return tests::message_of<UsageError>([&] { Probe{.takes_words = takes_words}.read(args); });
}

TEST(CommandLine, TakesNamesAndLetters) {
  for (const Words& args :
       {Words{"--min-bytes", "1K"}, {"--min_bytes=1K"}, {"-b", "1K"}, {"-b1K"}, {"-b=1K"}, {"-b", "2", "-b", "1K"}}) {
    Probe probe;
    probe.read(args);
    EXPECT_EQ(probe.size, "1K") << args.front();
  }
}

TEST(CommandLine, ExpandsHomeInPathsOnly) {
  std::string path, name;
  const CommandLine line{
      .command = "gradring probe",
      .options = {text_option("output", "FILE.md", "file", path), text_option("name", "N", "", name)}};
  const std::string home = system_variable("HOME").value_or("");
  if (home.empty()) GTEST_SKIP() << "HOME is not set";
  const auto read = [&](const std::string& value) {
    read_command_line(line, Words{"--output=" + value, "--name=" + value});
    EXPECT_EQ(name, value);
    return path;
  };
  EXPECT_EQ(read("~"), home);
  EXPECT_EQ(read("~/a/~"), home + "/a/~");
  for (const char* same : {"", "a/~/b", "./~", "/~"}) EXPECT_EQ(read(same), same);
  EXPECT_EQ(tests::message_of<UsageError>([&] { read("~else/a"); }),
            "--output is '~else/a': the home directory of a user is not looked up; write it in full, or put ./ before "
            "the name of a file that begins with ~");
}

TEST(CommandLine, TakesFlagsAloneOrWithAWord) {
  Probe probe;
  probe.read({"--check"});
  EXPECT_EQ(probe.check, "true");
  probe.read({"--check=0"});
  EXPECT_EQ(probe.check, "0");
  probe.read({"--check", "--no-check"});
  EXPECT_EQ(probe.check, "false");
  EXPECT_THAT(probe_refusal({"--no-check=true"}), HasSubstr("unknown option --no-check"));
  EXPECT_THAT(probe_refusal({"--no-min-bytes"}), HasSubstr("unknown option --no-min-bytes"));
}

TEST(CommandLine, TakesSwitchesAsFlags) {
  bool on = false;
  const CommandLine line{.command = "gradring probe", .options = {switch_option("dry-run", "", on)}};
  read_command_line(line, Words{"--dry-run"});
  EXPECT_TRUE(on);
  read_command_line(line, Words{"--no-dry-run"});
  EXPECT_FALSE(on);
  EXPECT_EQ(tests::message_of<UsageError>([&] { read_command_line(line, Words{"--dry-run=1"}); }),
            "--dry-run takes no value");
}

TEST(CommandLine, KeepsValuesAsTheyAre) {
  for (const char* value : {"", "-1", "-x", "[a,b]", "{}", "a=b", "--x", "a_b", "%%", "\"q\""}) {
    Probe probe;
    probe.read({std::string("--min-bytes=") + value});
    EXPECT_EQ(probe.size, value);
    if (std::string_view(value).starts_with("--")) continue;
    probe.read({"--min-bytes", value});
    EXPECT_EQ(probe.size, value);
  }
}

TEST(CommandLine, LeavesTheArgumentsOfAnotherProgramAlone) {
  Probe probe{.ends_at_word = true};
  EXPECT_THAT(probe.read({"-b", "2", "train", "--check", "--no_such=x"}).words,
              ElementsAre("train", "--check", "--no_such=x"));
  EXPECT_EQ(probe.size, "2");
  EXPECT_THAT(probe.read({"--", "--help"}).words, ElementsAre("--", "--help"));
  EXPECT_FALSE(probe.read({"train", "--help"}).help);
  EXPECT_TRUE(probe.read({"--help", "--no-such"}).help);
}

TEST(CommandLine, GivesBackWordsWhereTheyAreWanted) {
  Probe probe{.takes_words = true};
  EXPECT_THAT(probe.read({"mnist", "--check", "cifar10"}).words, ElementsAre("mnist", "cifar10"));
  EXPECT_THAT(probe_refusal({"mnist"}), HasSubstr("unexpected argument 'mnist': options begin with --"));
  EXPECT_THAT(probe_refusal({"-x"}, true), HasSubstr("unknown option -x"));
}

TEST(CommandLine, RejectsWhatItDoesNotKnow) {
  EXPECT_EQ(probe_refusal({"--min-byte", "8"}),
            "unknown option --min-byte. Did you mean '--min-bytes'? See gradring probe --help");
  EXPECT_EQ(probe_refusal({"-b"}), "-b needs a value; see gradring probe --help");
  EXPECT_EQ(probe_refusal({"--min-bytes", "--check"}), "--min-bytes needs a value; see gradring probe --help");
}

TEST(CommandLine, ListsItsOptions) {
  const std::string help = help_of(Probe().line());
  EXPECT_THAT(help, HasSubstr("  -b, --min-bytes N       smallest size (default 8)\n"));
  EXPECT_THAT(help, HasSubstr("  --check "));
  EXPECT_THAT(help, HasSubstr("  -h, --help "));
  EXPECT_THAT(help, HasSubstr("  --color auto|always|never"));
  EXPECT_TRUE(Probe().read({"-h"}).help);
}

}  // namespace
}  // namespace gradring::train
