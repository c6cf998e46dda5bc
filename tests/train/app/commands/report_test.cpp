// SPDX-License-Identifier: Apache-2.0
// gradring report on real runs; its pages are opened in Chromium.
#include <gmock/gmock.h>
#include <signal.h>

#include <fstream>
#include <string>

#include "tests/train/app/commands/support/run_directories.h"

namespace gradring::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kNoBrowser = 77;

class Report : public RunDirectories {
 protected:
  Words training(const std::string& run, const Words& more = {}) const {
    return joined({"train", "--dataset", "digits", "--device", "cpu", "--progress", "none", "--batch-size", "32",
                   "--run-dir", run},
                  more);
  }
  /// The page of some runs.
  std::string report(const Words& runs, const std::string& page = "report.html") const {
    const ProgramEnd end = place_.run(joined(joined({"report"}, runs), {"-o", page}));
    EXPECT_EQ(end.code, 0) << end.err;
    return text_of(place_.path(page));
  }
  ProgramEnd open(const Words& pages) const {
    return run_program({.command = joined({"/usr/bin/env", "python3", GRADRING_OPEN_REPORT}, pages),
                        .folder = place_.folder().path()});
  }
};

TEST_F(Report, ShowsARestartedRunAndOneOfAHostileNameInABrowser) {
  const Words first = training("first", {"--resume", "auto", "--steps", "60", "--save-every-steps", "20", "--precision",
                                         "fp16", "--eval-every", "20", "--inject", "kill:rank=1,step=30"});
  const ProgramEnd end = place_.run(joined({"launch", "--nproc-per-node", "2", "--max-restarts", "1"}, first));
  ASSERT_EQ(end.code, 0) << end.err;
  const std::string hostile = R"("><script>alert(1)<img src=x onerror=alert(2)>)";
  ASSERT_EQ(place_.run(training("<b>", {"--steps", "30", "--name", hostile, "--tags", hostile})).code, 0);

  const std::string page = report({"first"}, "first.html");
  for (const char* part : {"kill, rank 1", "restart 1 after step 20", "Confusion matrix", "First-layer filters",
                           "Loss scale", "--max-restarts", "kill:rank=1,step=30", "Peak memory"})
    EXPECT_THAT(page, HasSubstr(part));
  const std::string both = report({"first", "<b>"}, "both.html");
  EXPECT_THAT(both, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("<img src=x")), HasSubstr("&lt;script&gt;")));
  EXPECT_LT(both.find("Configuration differences"), both.find("Training loss"));

  const ProgramEnd opened = open({"first.html", "both.html"});
  if (opened.code == kNoBrowser) GTEST_SKIP() << opened.out;
  EXPECT_EQ(opened.code, 0) << opened.out << opened.err;
}

TEST_F(Report, ShowsParameterGroupsAsRunsShowDoes) {
  ASSERT_EQ(place_.run(training("plain", {"--steps", "2"})).code, 0);
  EXPECT_THAT(report({"plain"}), Not(HasSubstr("Parameter groups")));
  EXPECT_THAT(place_.run({"runs", "show", "plain"}).out, Not(HasSubstr("Parameter groups")));
  const Words groups = {"--steps",        "2",    "--optimizer", "sgd",          "--lr",    "0.1",
                        "--weight-decay", "0.01", "--group",     "<*.bias:lr=1", "--group", "conv_layers.*:frozen"};
  EXPECT_EQ(place_.run(training("wrong", groups)).code, 2);
  Words right = groups;
  right[9] = "*.bias:lr=1,weight_decay=0,epochs=0.5";
  ASSERT_EQ(place_.run(training("groups", right)).code, 0);
  const std::string page = report({"groups"});
  const std::string table = page.substr(page.find("Parameter groups"));
  for (const char* cell : {">others<", ">*.bias conv_layers.*<", ">*.bias<", ">frozen<", ">sgd, 0.5 epochs<", ">0.01<"})
    EXPECT_THAT(table, HasSubstr(cell));
  const std::string shown = place_.run({"runs", "show", "groups"}).out;
  EXPECT_THAT(shown, HasSubstr("Parameter groups"));
  EXPECT_THAT(shown, ::testing::ContainsRegex("others +sgd +2 +412160 +0.1 +0.01"));
  EXPECT_THAT(shown, ::testing::ContainsRegex("\\*.bias +sgd, 0.5 epochs +2 +266 +1 +0\n"));
  EXPECT_THAT(shown, ::testing::ContainsRegex("frozen +4 +18816 +- +-"));
}

/// The figure with this title.
std::string figure_of(const std::string& page, const std::string& title) {
  const std::size_t begin = page.find("<figure class=\"chart\"><h3>" + title + "</h3>");
  if (begin == page.npos) return "no figure " + title;
  return page.substr(begin, page.find("</figure>", begin) - begin);
}

TEST_F(Report, OfComparedRunsHasTheirDifferencesFirstAndOnePlotForAll) {
  const std::string rates[] = {"0.001", "0.01", "0.1"};
  Words compared = {"runs", "compare"};
  for (const std::string& rate : rates) {
    const Words words = {"--steps", "30", "--eval-every", "10", "--optimizer", "sgd", "--lr", rate};
    ASSERT_EQ(place_.run(training("rate " + rate, words)).code, 0);
    compared.push_back("rate " + rate);
  }
  const ProgramEnd plain = place_.run(compared);
  const ProgramEnd end = place_.run(joined(compared, {"--html", "compared.html"}));
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(end.out, plain.out) << "the page is written besides";

  const std::string page = text_of(place_.path("compared.html"));
  const std::size_t differences = page.find("Configuration differences"), results = page.find(">Results<");
  EXPECT_LT(differences, results);
  const std::string plot = "<h3>Training loss</h3>";
  EXPECT_LT(results, page.find(plot));
  const std::string table = page.substr(differences, results - differences);
  for (const std::string& rate : rates) EXPECT_THAT(table, HasSubstr(">" + rate + "<")) << table;
  EXPECT_THAT(table, Not(HasSubstr("batch-size"))) << "it is the same";
  for (const char* const title : {"Training loss", "Test accuracy", "Learning rate", "Gradient norm", "Throughput"}) {
    const std::string figure = figure_of(page, title);
    for (std::size_t run = 0; run < 3; ++run) {
      const std::string color = "c" + std::to_string(run);
      EXPECT_THAT(figure, AllOf(HasSubstr(std::to_string(run + 1) + ". rate " + rates[run] + "</span>"),
                                HasSubstr("class=\"line " + color + "\" d=\"M")))
          << title;
    }
  }
  EXPECT_EQ(page.find(plot), page.rfind(plot)) << "no plot of a single run";
  const ProgramEnd opened = open({"compared.html"});
  if (opened.code == kNoBrowser) GTEST_SKIP() << opened.out;
  EXPECT_EQ(opened.code, 0) << opened.out << opened.err;
}

TEST_F(Report, IsOpenedByABrowserThatFindsPlantedMistakes) {
  ASSERT_EQ(place_.run(training("run", {"--steps", "10"})).code, 0);
  std::string page = report({"run"});
  page.insert(page.find("<main>"), "<div style=\"width:2000px\">wide</div><script>alert(1)</script>");
  std::ofstream(place_.path("planted.html")) << page;
  const ProgramEnd opened = open({"planted.html"});
  if (opened.code == kNoBrowser) GTEST_SKIP() << opened.out;
  EXPECT_EQ(opened.code, 1);
  EXPECT_THAT(opened.out, AllOf(HasSubstr("overflows at 390 pixels"), HasSubstr("CONSOLE"), HasSubstr("has scripts")));
}

TEST_F(Report, ReachesTheLastStepOfAKilledRun) {
  RunningProgram program(place_.gradring(training("run", {"--epochs", "1000"})));
  ASSERT_TRUE(waits_for([&] { return records_of(run() / "metrics.jsonl").size() > 20; }));
  ::kill(program.pid(), SIGKILL);
  program.wait();
  const std::size_t steps = records_of(run() / "metrics.jsonl").size();
  const std::string page = report({"run"});
  EXPECT_THAT(page, HasSubstr("killed: it wrote no end"));
  EXPECT_THAT(page, HasSubstr("<span>Steps</span><b>" + std::to_string(steps) + "</b>"));
}

TEST_F(Report, IsReadUpToACutLineWithAWarning) {
  ASSERT_EQ(place_.run(training("run", {"--steps", "10"})).code, 0);
  std::string metrics = text_of(run() / "metrics.jsonl");
  metrics.resize(metrics.find("\"step\":8"));
  std::ofstream(run() / "metrics.jsonl") << metrics;
  std::filesystem::remove_all(run() / "checkpoints");
  const ProgramEnd end = place_.run({"report", "run"});
  EXPECT_EQ(end.code, 0);
  EXPECT_THAT(end.err, AllOf(HasSubstr("gradring report: "), HasSubstr("is incomplete")));
  const std::string page = text_of(place_.path("report.html"));
  EXPECT_THAT(page, AllOf(HasSubstr("is incomplete"), HasSubstr("<span>Steps</span><b>7</b>"),
                          HasSubstr("The model could not be evaluated: ")));
}

TEST_F(Report, StaysSmallForTenThousandSteps) {
  ASSERT_EQ(place_.run(training("run", {"--steps", "20"})).code, 0);
  std::string lines;
  for (int step = 1; step <= 10000; ++step)
    lines += R"({"event":"train","time":1,"epoch":1,"step":)" + std::to_string(step) + R"(,"loss":)" +
             std::to_string(1 + step * 7919 % 1000) + R"(,"lr":0.1,"samples":64,"seconds":0.0)" +
             std::to_string(1 + step * 104729 % 900) + R"(,"gradient_norm":)" + std::to_string(1 + step * 31 % 101) +
             "}\n";
  std::ofstream(run() / "metrics.jsonl") << lines;
  EXPECT_LT(report({"run"}).size(), 500'000u);
}

TEST_F(Report, RejectsWhatIsNoRun) {
  const ProgramEnd missing = place_.run({"report", "nowhere"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.err, HasSubstr("nowhere"));
  EXPECT_EQ(place_.run({"report"}).code, 2);
  EXPECT_FALSE(std::filesystem::exists(place_.path("report.html")));
}

}  // namespace
}  // namespace gradring::tests
