// SPDX-License-Identifier: Apache-2.0
// gradring lr-find, by the program that was built.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/run_directories.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tests::ProgramEnd;
using tests::Words;

class LrFind : public tests::RunDirectories {
 protected:
  ProgramEnd find(const Words& more) const {
    return place_.run(tests::joined({"lr-find", "--dataset", "digits", "--device", "cpu"}, more));
  }
};

TEST_F(LrFind, TrainsWithAGrowingRateUntilTheLossDiverges) {
  const ProgramEnd end = find({"--optimizer", "sgd", "--min", "1e-4", "--max", "100", "--steps", "60", "--json"});
  ASSERT_EQ(end.code, 0) << end.err;
  const json found = tests::parse_json(end.out);
  EXPECT_TRUE(found["diverged"]);
  const auto& points = found["points"];
  ASSERT_GT(points.size(), 20u);
  EXPECT_LT(points.size(), 60u);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double rate = points[i]["learning_rate"];
    EXPECT_NEAR(rate / (1e-4 * std::pow(1e6, static_cast<double>(i) / 59)), 1, 1e-6);
  }
  const double suggested = found["suggestion"];
  EXPECT_GT(suggested, 1e-3);
  EXPECT_LT(suggested, points.back()["learning_rate"].get<double>());
  // What it suggests trains better than the ends of the range.
  const auto accuracy = [&](const std::string& run, double rate) {
    const ProgramEnd trained =
        place_.run({"train", "--dataset", "digits", "--device", "cpu", "--optimizer", "sgd", "--lr",
                    std::to_string(rate), "--steps", "100", "--run-dir", run, "--progress", "none"});
    return trained.code == 0 ? summary_in(place_.path(run))["accuracy"].get<double>() : 0;
  };
  const double good = accuracy("good", suggested);
  EXPECT_GT(good, accuracy("low", 1e-4));
  EXPECT_GT(good, accuracy("high", points.back()["learning_rate"]));
}

/// The rate of the head, a thousand times that of the others, makes the loss diverge before theirs would.
TEST_F(LrFind, KeepsTheRatioOfAGroupsRate) {
  const Words words = {"--optimizer", "sgd", "--min", "1e-4", "--max", "100", "--steps", "60", "--lr", "0.01"};
  const auto last_rate = [&](const Words& more) {
    const ProgramEnd end = find(tests::joined(tests::joined(words, more), {"--json"}));
    EXPECT_EQ(end.code, 0) << end.err;
    return tests::parse_json(end.out).at("points").back().at("learning_rate").get<double>();
  };
  const double plain = last_rate({});
  EXPECT_EQ(last_rate({"--group", "fc_layers.2.*:lr=0.01"}), plain);
  EXPECT_LT(last_rate({"--group", "fc_layers.2.*:lr=10"}), plain / 3);
  const ProgramEnd end = find(tests::joined(words, {"--group", "fc_layers.2.*:lr=1,epochs=0.1"}));
  EXPECT_THAT(end.out, HasSubstr("'fc_layers.2.*:lr="));
  const ProgramEnd none = find({"--steps", "20", "--lr", "0", "--group", "fc_layers.2.*:lr=1"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("keeps its ratio to --lr, which is 0"));
}

TEST_F(LrFind, IsDeterministicAndWritesOnlyWhatIsNamed) {
  const Words words = {"--steps", "30", "--batch-size", "16"};
  const ProgramEnd first = find(words);
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, AllOf(HasSubstr("Suggestion     --lr "), HasSubstr("steepest descent")));
  EXPECT_THAT(place_.left(), IsEmpty());
  const ProgramEnd second = find(tests::joined(words, {"--csv", "lr.csv", "--plot", "lr.svg"}));
  EXPECT_EQ(second.out, first.out);
  EXPECT_THAT(place_.left(), ElementsAre("lr.csv", "lr.svg"));
  const auto lines = tests::lines_of(place_.path("lr.csv"));
  EXPECT_EQ(lines.front(), "step,learning_rate,loss,smoothed_loss");
  EXPECT_THAT(lines[1], ::testing::StartsWith("1,1e-07,2.3"));
}

/// The rates in the file of the losses tell where the axis begins and ends.
TEST_F(LrFind, PlotsLossesOverTheLogarithmOfTheRate) {
  const ProgramEnd end = find({"--optimizer", "sgd", "--min", "1e-5", "--max", "1", "--steps", "40", "--csv", "lr.csv",
                               "--plot", "lr.svg", "--json"});
  ASSERT_EQ(end.code, 0) << end.err;
  const auto rate_in = [](const std::string& line) { return std::stod(line.substr(line.find(',') + 1)); };
  const auto lines = tests::lines_of(place_.path("lr.csv"));
  const double first = rate_in(lines[1]), last = rate_in(lines.back());
  const auto place_of = [&](double rate) { return 100 * std::log(rate / first) / std::log(last / first); };
  const std::string svg = tests::text_of(place_.path("lr.svg"));
  EXPECT_THAT(svg, HasSubstr(">learning rate<"));
  for (const auto& [rate, label] :
       {std::pair(1e-5, "1e-5"), std::pair(1e-4, "1e-4"), std::pair(1e-3, "0.001"), std::pair(1e-2, "0.01")}) {
    const std::size_t at = svg.find(std::string(R"(text-anchor="middle">)") + label + "<");
    ASSERT_NE(at, svg.npos) << label << svg;
    const std::size_t x = svg.rfind(" x=\"", at) + 4;
    EXPECT_NEAR(std::stod(svg.substr(x)), place_of(rate), 0.01) << label;
  }
  const double suggested = tests::parse_json(end.out)["suggestion"];
  const std::size_t mark = svg.find("<line x1=\"", svg.find("class=\"mark"));
  EXPECT_NEAR(std::stod(svg.substr(mark + 10)), place_of(suggested), 0.01);
}

TEST_F(LrFind, SeesTheSameLossesOnTwoRanks) {
  const auto losses = [&](const Words& more) {
    const ProgramEnd end = find(tests::joined(
        {"--steps", "20", "--sampler", "sharded", "--global-batch", "32", "--batch-size", "16", "--json"}, more));
    EXPECT_EQ(end.code, 0) << end.err;
    return tests::parse_json(end.out)["points"];
  };
  const json one = losses({}), two = losses({"--nprocs", "2"});
  ASSERT_EQ(one.size(), two.size());
  for (std::size_t i = 0; i < 10; ++i)
    EXPECT_NEAR(one[i]["loss"].get<double>(), two[i]["loss"].get<double>(), 1e-4) << i;
}

TEST_F(LrFind, RejectsWhatIsNoRange) {
  for (const Words& bad : {Words{"--min", "1", "--max", "0.1"}, {"--min", "0"}, {"--steps", "1"}, {"--csv", "none/a"}})
    EXPECT_EQ(find(bad).code, 2) << bad.back();
  EXPECT_EQ(find({"--help"}).code, 0);
}

}  // namespace
}  // namespace gradring
