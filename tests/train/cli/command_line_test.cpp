// SPDX-License-Identifier: Apache-2.0
#include "train/cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/support/message_of.h"
#include "train/config/usage_error.h"

namespace gradring::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

/// A command with a lettered option, a flag, and words where they are wanted.
struct Probe {
  std::string size = "8";
  std::string check = "none";
  bool takes_words = false;

  CommandWords read(const Words& args) {
    return read_command_line({.command = "gradring probe", .options = options(), .takes_words = takes_words}, args);
  }
  std::vector<CommandOption> options() {
    return {{.name = "min-bytes", .letter = 'b', .value = "N", .help = "smallest size [8]", .read = into(size)},
            {.name = "check", .help = "look at the result", .read = into(check)}};
  }
  static std::function<void(std::string_view)> into(std::string& field) {
    return [&field](std::string_view text) { field = std::string(text); };
  }
};

std::string refusal(const Words& args, bool takes_words = false) {
  return tests::message_of<UsageError>([&] { Probe{.takes_words = takes_words}.read(args); });
}

TEST(CommandLine, TakesNamesAndLetters) {
  for (const Words& args : {Words{"--min-bytes", "1K"}, {"--min_bytes=1K"}, {"-b", "1K"}, {"-b", "2", "-b", "1K"}}) {
    Probe probe;
    probe.read(args);
    EXPECT_EQ(probe.size, "1K") << args.front();
  }
}

TEST(CommandLine, TakesFlagsAloneOrWithAWord) {
  Probe probe;
  probe.read({"--check"});
  EXPECT_EQ(probe.check, "true");
  probe.read({"--check=0"});
  EXPECT_EQ(probe.check, "0");
}

TEST(CommandLine, GivesBackWordsWhereTheyAreWanted) {
  Probe probe{.takes_words = true};
  EXPECT_THAT(probe.read({"mnist", "--check", "cifar10"}).words, ElementsAre("mnist", "cifar10"));
  EXPECT_THAT(refusal({"mnist"}), HasSubstr("'mnist' is not understood: options begin with --"));
  EXPECT_THAT(refusal({"-x"}, true), HasSubstr("'-x' is not understood"));
}

TEST(CommandLine, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(refusal({"--min-byte", "8"}), "there is no option --min-byte. Did you mean 'min-bytes'?");
  EXPECT_EQ(refusal({"-b"}), "-b needs a value; see gradring probe --help");
  EXPECT_EQ(refusal({"--min-bytes", "--check"}), "--min-bytes needs a value; see gradring probe --help");
}

TEST(CommandLine, ListsItsOptions) {
  const std::string help = help_of(Probe().options());
  EXPECT_THAT(help, HasSubstr("  -b, --min-bytes N           smallest size [8]\n"));
  EXPECT_THAT(help, HasSubstr("  --check "));
  EXPECT_THAT(help, HasSubstr("  --help "));
  EXPECT_TRUE(Probe().read({"-h"}).help);
}

}  // namespace
}  // namespace gradring::train
