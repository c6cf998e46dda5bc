// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/run_list.h"

#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/train/view/runs/written_run.h"
#include "train/view/runs/text_table.h"

namespace gradring::train {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

ListedRun run_named(const std::string& name) { return {.name = name, .state = RunState::finished}; }

std::vector<std::string> names(const std::vector<ListedRun>& runs) {
  std::vector<std::string> all;
  for (const ListedRun& run : runs) all.push_back(run.name);
  return all;
}

class RunListTest : public ::testing::Test {
 protected:
  RunListTest() {
    ListedRun a = run_named("a"), b = run_named("b"), c = run_named("c");
    a.figures.started = 10, a.figures.test.best_accuracy = 0.5, a.figures.last_loss = 2.0;
    b.figures.started = 30, b.figures.last_loss = std::nan("");
    c.figures.started = 20, c.figures.test.best_accuracy = 0.9, c.figures.last_loss = 0.1;
    b.state = RunState::failed;
    a.tags = {"x", "y"}, c.tags = {"y"};
    runs_ = {a, b, c};
  }
  std::vector<std::string> order(ListQuery query) const { return names(selected(runs_, query)); }

  std::vector<ListedRun> runs_;
};

TEST_F(RunListTest, IsSortedWithRunsWithoutAValueLast) {
  EXPECT_THAT(order({}), ElementsAre("b", "c", "a"));
  EXPECT_THAT(order({.reverse = true}), ElementsAre("a", "c", "b"));
  EXPECT_THAT(order({.sort = "best"}), ElementsAre("c", "a", "b"));
  EXPECT_THAT(order({.sort = "best", .reverse = true}), ElementsAre("a", "c", "b"));
  EXPECT_THAT(order({.sort = "loss"}), ElementsAre("c", "a", "b"));
  EXPECT_THAT(order({.sort = "name", .reverse = true}), ElementsAre("c", "b", "a"));
  EXPECT_THAT(order({.sort = "state"}), ElementsAre("a", "c", "b"));
}

TEST_F(RunListTest, IsFilteredByStateTagAndLimit) {
  EXPECT_THAT(order({.states = {RunState::failed, RunState::running}}), ElementsAre("b"));
  EXPECT_THAT(order({.tags = {"y"}}), ElementsAre("c", "a"));
  EXPECT_THAT(order({.tags = {"y", "x"}}), ElementsAre("a"));
  EXPECT_THAT(order({.limit = 2}), ElementsAre("b", "c"));
}

TEST_F(RunListTest, FitsTheTerminal) {
  runs_[0].name = "fashion-mnist-convnet-20261124-065302";
  runs_[0].tags = {"a-tag-of-some-length", "and-another"};
  runs_[0].losses = {3, 2, 1};
  for (const std::size_t width : {200, 80, 70, 30}) {
    const std::string table = table_of(runs_, width, Glyphs::utf8);
    for (std::size_t begin = 0, end = 0; (end = table.find('\n', begin)) != table.npos; begin = end + 1)
      EXPECT_LE(columns_of(table.substr(begin, end - begin)), width) << table;
  }
  const std::string narrow = table_of(runs_, 80, Glyphs::utf8);
  EXPECT_THAT(narrow, HasSubstr("…"));
  EXPECT_THAT(narrow, HasSubstr("65302")) << "the end of a name tells runs apart";
  EXPECT_THAT(table_of(runs_, std::nullopt, Glyphs::utf8), HasSubstr("fashion-mnist-convnet-20261124-065302 finished"));
}

TEST(RunList, ReadsAFolderAndLeavesOutWhatIsNoRun) {
  const tests::WrittenRuns runs;
  runs.write("a", {tests::start_at(10, {.tags = {"x"}}), tests::step_at(11, 1), tests::step_at(12, 2, 0.5)});
  std::filesystem::create_directory(runs.path("no-run"));
  const RunList list = list_runs({runs.folder().string()});
  ASSERT_THAT(names(list.runs), ElementsAre("a"));
  EXPECT_THAT(list.runs[0].losses, ElementsAre(1, 0.5));
  EXPECT_THAT(list.problems, IsEmpty());
  const auto json = to_json(list.runs[0]);
  EXPECT_EQ(json.at("last_loss"), 0.5);
  EXPECT_TRUE(json.at("best_accuracy").is_null());
  EXPECT_EQ(json.at("tags"), nlohmann::ordered_json({"x"}));
}

TEST(RunList, HasTheRunsBesideOneThatCannotBeRead) {
  const tests::WrittenRuns runs;
  runs.write("a", {tests::start_at(10)});
  std::filesystem::create_directory(runs.path("b"));
  std::filesystem::create_symlink("checkpoints", runs.path("b") / "checkpoints");  // nobody can read it
  const RunList list = list_runs({runs.folder().string()});
  EXPECT_THAT(names(list.runs), ElementsAre("a"));
  EXPECT_THAT(list.problems, ElementsAre(HasSubstr("Too many levels of symbolic links")));
}

TEST(RunList, TableHasNamesAndSetsOfEvaluationsWhereTheySayMore) {
  ListedRun generated = run_named("mnist-20261124"), named = run_named("a"), validated = run_named("b");
  generated.path = "runs/mnist-20261124", generated.given_name = "mnist";
  named.path = "runs/a", validated.path = "runs/b";
  generated.figures.test.best_accuracy = 0.5;
  EXPECT_THAT(table_of({generated, named}, std::nullopt, Glyphs::utf8), Not(AnyOf(HasSubstr("name"), HasSubstr("set"))))
      << "the directory is called by it";
  named.given_name = "two ranks";
  validated.figures.is_validated = true;
  validated.figures.validation = {.best_accuracy = 0.875, .last_accuracy = 0.75};
  validated.figures.test = {.best_accuracy = 0.25, .last_accuracy = 0.25};
  const std::string table = table_of({generated, named, validated}, std::nullopt, Glyphs::utf8);
  EXPECT_THAT(table, HasSubstr("run            name      state    best % last % set  loss"));
  EXPECT_THAT(table, HasSubstr("mnist-20261124 mnist     finished  50.00      - test"));
  EXPECT_THAT(table, HasSubstr("a              two ranks finished      -      -      "));
  EXPECT_THAT(table, HasSubstr("b                        finished  87.50  75.00 val"));
  EXPECT_EQ(to_json(named).at("name"), "two ranks");
  EXPECT_EQ(to_json(validated).at("evaluated_on"), "validation");
  EXPECT_EQ(to_json(validated).at("test_accuracy"), 0.25);
}

TEST(CompareRuns, DoNotCompareAccuraciesOnDifferentSamples) {
  const tests::WrittenRuns runs;
  const auto eval = [](std::int64_t step, const char* split, double accuracy) {
    return TimedEvent{.time = 11, .event = EvalRecord{.step = step, .split = split, .accuracy = accuracy}};
  };
  const std::vector<train::Run> compared = {
      open_run(runs.write(
          "a", {tests::start_at(10), eval(5, "validation", 0.9), eval(10, "validation", 0.7), eval(10, "test", 0.8)})),
      open_run(runs.write("b", {tests::start_at(10), eval(5, "test", 0.85), eval(10, "test", 0.6)}))};
  const std::string text = comparison_of(compared, std::nullopt, Glyphs::utf8);
  EXPECT_THAT(text, HasSubstr("\nbest validation %  90.00  -\n"));
  EXPECT_THAT(text, HasSubstr("\nlast validation %  70.00  -\n"));
  EXPECT_THAT(text, HasSubstr("\nbest test %        80.00  85.00*\n"));
  EXPECT_THAT(text, HasSubstr("\nlast test %        80.00* 60.00\n"));
  const std::string tests_only = comparison_of(std::span(compared).last(1), std::nullopt, Glyphs::utf8);
  EXPECT_THAT(tests_only, Not(HasSubstr("validation")));
}

TEST(Sparkline, ShowsMeansBetweenMinimumAndMaximum) {
  const double falling[] = {8, 8, 6, 6, 1, 1};
  EXPECT_EQ(sparkline(falling, 3, Glyphs::utf8), "█▆▁");
  EXPECT_EQ(sparkline(falling, 3, Glyphs::ascii), "#+_");
  EXPECT_EQ(sparkline(falling, 100, Glyphs::utf8), "██▆▆▁▁") << "no wider than its values";
  const double diverged[] = {1, 2, std::nan(""), INFINITY};
  EXPECT_EQ(sparkline(diverged, 4, Glyphs::utf8), "▁█!!");
  EXPECT_EQ(sparkline({}, 4, Glyphs::utf8), "");
}

TEST(TextTable, CutsControlCharactersAndWholeCodePoints) {
  EXPECT_EQ(shortened("a\033[2Jb", 10, Glyphs::utf8), "a\\x1b[2Jb");
  EXPECT_EQ(shortened("äöüäöü", 4, Glyphs::utf8), "äöü…");
  EXPECT_EQ(shortened("abcdefgh", 5, Glyphs::ascii, true), "ab~gh");
  EXPECT_THAT(duration_text(59.4), "59s");
  EXPECT_THAT(duration_text(151), "2m31s");
  EXPECT_THAT(duration_text(3900), "1h05m");
  EXPECT_THAT(duration_text(90000), "1d01h");
}

}  // namespace
}  // namespace gradring::train
