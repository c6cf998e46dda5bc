// SPDX-License-Identifier: Apache-2.0
// Commands that show runs and traces, on files that a program other than gradring wrote, to do harm.
#include <gmock/gmock.h>

#include <fstream>

#include "kernels/base/printable.h"
#include "tests/train/app/commands/support/run_directories.h"

namespace gradring::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// ESC, CSI as one character, BEL, right-to-left override, isolate, mark, and a byte that is not UTF-8.
const std::string kObeyed = "\033[2J\u009b2J\a\u202e\u2066\u200f\xff";

bool is_shown(const std::string& text) { return printable_bytes(text, "\n\t") == text.size(); }

class HostileFiles : public RunDirectories {
 protected:
  /// A run whose metrics.jsonl has these lines.
  void write_run(const std::string& name, const Words& lines) const {
    std::filesystem::create_directories(place_.path("runs/" + name) / "logs");
    std::ofstream(place_.path("runs/" + name) / "config.resolved.toml") << "lr = 0.001\n";
    std::ofstream file(place_.path("runs/" + name) / "metrics.jsonl");
    for (const std::string& line : lines) file << line << '\n';
  }
  /// Every view of a run.
  std::vector<Words> views_of(const std::string& run) const {
    return {{"runs", "ls", "runs"},
            {"runs", "show", run},
            {"runs", "compare", run, run},
            {"top", run, "--once"},
            {"report", run, "--no-pictures", "-o", "page.html"},
            {"runs", "rm", run, "--dry-run"},
            {"runs", "ls", "runs", "--json"},
            {"runs", "show", run, "--json"}};
  }
};

TEST_F(HostileFiles, ReachATerminalWithoutWhatItObeys) {
  const std::string text = nlohmann::json(kObeyed).dump(-1, ' ', false, nlohmann::json::error_handler_t::ignore);
  const std::string run = "a" + kObeyed;
  write_run(run, {R"({"event":"header","time":1,"ranks":2,"model":)" + text + R"(,"name":)" + text + R"(,"tags":[)" +
                      text + R"(],"dataset":)" + text + R"(,"host":)" + text + R"(,"device":)" + text +
                      R"(,"command":[)" + text + R"(],"config":{"lr":)" + text + "}}",
                  R"({"event":"fault","time":2,"kind":)" + text + "}", "not an event" + kObeyed,
                  R"({"event":"end","time":3,"outcome":"failed","reason":)" + text + "}"});
  std::ofstream(place_.path("runs/" + run) / "logs" / "rank_0.log") << "t  training ended: " << kObeyed << '\n';
  for (const Words& words : views_of(run)) {
    const ProgramEnd end = place_.run(words);
    EXPECT_TRUE(is_shown(end.out)) << words[1] << '\n' << printable(end.out, "\n");
    EXPECT_TRUE(is_shown(end.err)) << words[1] << '\n' << printable(end.err, "\n");
  }
  EXPECT_EQ(text_of(place_.path("page.html")).find("\u202e"), std::string::npos);
  for (const Words& words : {Words{"runs", "show", kObeyed},
                             {"eval", kObeyed},
                             {kObeyed},
                             {"train", "--" + kObeyed},
                             {"trace", "summary", kObeyed},
                             {"launch", "--" + kObeyed},
                             {"report", run, "-o", kObeyed + "/a"}}) {
    const ProgramEnd end = place_.run(words);
    EXPECT_NE(end.code, 0) << words[0];
    EXPECT_THAT(end.err, HasSubstr("\\x1b[2J")) << words[0];
    EXPECT_TRUE(is_shown(end.err)) << words[0] << '\n' << printable(end.err, "\n");
  }
}

TEST_F(HostileFiles, OfValuesThatCannotBeAreNamedWithTheirLine) {
  write_run("a", {R"({"event":"header","time":1,"ranks":2,"model":"m","total_steps":10})",
                  R"({"event":"train","time":1e300,"step":1,"epoch":1,"loss":1,"samples":1,"seconds":1})",
                  R"({"event":"end","time":2,"steps":18446744073709551615})"});
  for (const Words& words : views_of("a")) {
    const ProgramEnd end = place_.run(words);
    EXPECT_EQ(end.code, 0) << words[0] << ' ' << words[1] << '\n' << end.err;
    if (words[0] == "top" || words[1] == "rm") continue;  // they do not report lines
    EXPECT_THAT(end.err, AllOf(HasSubstr("a/metrics.jsonl: line 2 is not an event (time is 1e+300, expected"),
                               HasSubstr("a/metrics.jsonl: line 3 is not an event (steps is 18446744073709551615")));
  }
}

TEST_F(HostileFiles, OfManyLevelsOrMembersAreNoCrashAndNoHang) {
  std::string members = R"({"event":"header","time":1)";
  for (int i = 0; i < 200'000; ++i) members += ",\"" + std::to_string(i) + "\":1";
  const std::string deep(1'000'000, '[');
  write_run("a", {R"({"event":"header","time":1,"config":{"a":)" + deep + std::string(deep.size(), ']') + "}}",
                  members + "}"});
  std::ofstream(place_.path("runs/a/summary.json")) << members << "}";
  for (const Words& words : views_of("a")) EXPECT_EQ(place_.run(words).code, 0) << words[0] << ' ' << words[1];
}

}  // namespace
}  // namespace gradring::tests
