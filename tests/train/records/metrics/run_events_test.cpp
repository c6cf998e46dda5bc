// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "tests/support/json.h"
#include "train/records/metrics/event_reader.h"
#include "train/records/metrics/run_events_json.h"

namespace gradring::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// What a reader sees of a written event.
template <class Record>
Record through_a_line(const Record& record) {
  const auto event = from_line(to_line({.time = 12.5, .event = record}));
  EXPECT_TRUE(event && std::holds_alternative<Record>(event->event));
  EXPECT_EQ(event ? event->time : 0, 12.5);
  return event ? std::get<Record>(event->event) : Record{};
}

TEST(RunEvents, HeaderSurvivesAsText) {
  RunHeader header{.version = "0.1.0",
                   .command = {"gradring", "train"},
                   .name = "first \xff try",
                   .tags = {"a", "b"},
                   .parameters = 431080,
                   .groups = {{.patterns = {"*.bias", "fc*"},
                               .tensors = 2,
                               .parameters = 30,
                               .optimizer = "sgd",
                               .learning_rate = 0.5,
                               .weight_decay = 0.25,
                               .epochs = 1.5},
                              {.tensors = 1, .parameters = 7, .optimizer = "adam", .frozen = true}},
                   .ranks = 4,
                   .resumed_from = 7,
                   .config = {{"lr", "0.001"}, {"model", "\"convnet\""}, {"nesterov", "false"}}};
  header.planned_memory[MemoryClass::optimizer] = 99;
  const auto json = tests::parse_json(to_line({.time = 1, .event = header}));
  EXPECT_EQ(json.at("schema"), 1);
  EXPECT_EQ(json.at("config"), tests::parse_json(R"({"lr": 0.001, "model": "convnet", "nesterov": false})"));
  const RunHeader read = through_a_line(header);
  EXPECT_THAT(read.command, ElementsAre("gradring", "train"));
  EXPECT_THAT(read.tags, ElementsAre("a", "b"));
  EXPECT_EQ(read.name, "first \xef\xbf\xbd try") << "the byte that is not UTF-8 is replaced";
  EXPECT_EQ(read.parameters, 431080);
  EXPECT_EQ(read.ranks, 4);
  EXPECT_EQ(read.resumed_from, 7);
  EXPECT_EQ(read.planned_memory, header.planned_memory);
  ASSERT_EQ(read.groups.size(), 2u);
  EXPECT_THAT(read.groups[0].patterns, ElementsAre("*.bias", "fc*"));
  EXPECT_EQ(read.groups[0].parameters, 30);
  EXPECT_EQ(read.groups[0].learning_rate, 0.5);
  EXPECT_EQ(read.groups[0].weight_decay, 0.25);
  EXPECT_EQ(read.groups[0].epochs, 1.5);
  EXPECT_EQ(read.groups[1].epochs, std::nullopt);
  EXPECT_EQ(read.groups[1].optimizer, "adam");
  EXPECT_TRUE(read.groups[1].frozen);
  EXPECT_FALSE(json.at("parameter_groups").at(0).contains("event"));
  EXPECT_EQ(read.config, header.config);
}

TEST(RunEvents, StepSurvivesWithNan) {
  const StepRecord read = through_a_line(StepRecord{.step = 3,
                                                    .epoch = 2,
                                                    .loss = std::nan(""),
                                                    .learning_rate = 0.25,
                                                    .samples = 64,
                                                    .duration = std::chrono::milliseconds(500),
                                                    .forward = 0.125,
                                                    .gradient_norm = INFINITY,
                                                    .skipped = true,
                                                    .non_finite = "fc.bias"});
  EXPECT_EQ(read.step, 3);
  EXPECT_EQ(read.epoch, 2);
  EXPECT_TRUE(std::isnan(read.loss));
  EXPECT_EQ(read.learning_rate, 0.25);
  EXPECT_EQ(read.samples_per_second(), 128);
  EXPECT_EQ(read.forward, 0.125);
  EXPECT_EQ(read.backward, std::nullopt);
  EXPECT_TRUE(std::isnan(read.gradient_norm));
  EXPECT_TRUE(read.skipped);
  EXPECT_EQ(read.non_finite, "fc.bias");
  EXPECT_EQ(read.underflow, std::nullopt);
}

TEST(RunEvents, OthersSurvive) {
  const RanksRecord ranks = through_a_line(
      RanksRecord{.step = 10, .steps = 5, .seconds = {0.5, 0.25}, .exposed_communication = {NAN, 1}, .memory = {7, 8}});
  EXPECT_EQ(ranks.steps, 5);
  EXPECT_THAT(ranks.seconds, ElementsAre(0.5, 0.25));
  EXPECT_TRUE(std::isnan(ranks.exposed_communication.at(0)));
  EXPECT_THAT(ranks.memory, ElementsAre(7, 8));
  EXPECT_FALSE(through_a_line(EvalRecord{.ends_epoch = false}).ends_epoch);
  EXPECT_EQ(through_a_line(EvalRecord{.ema_loss = 0.5}).ema_loss, 0.5);
  EXPECT_EQ(through_a_line(RestartRecord{.step = 4, .attempt = 2}).attempt, 2);
  EXPECT_EQ(through_a_line(CheckpointRecord{.step = 4, .seconds = 0.5}).seconds, 0.5);
  EXPECT_EQ(through_a_line(FaultRecord{.step = 4, .rank = 1, .kind = "kill"}).kind, "kill");
  const EndRecord end = through_a_line(EndRecord{.outcome = Outcome::diverged, .reason = "NaN", .steps = 9});
  EXPECT_EQ(end.outcome, Outcome::diverged);
  EXPECT_EQ(end.reason, "NaN");
  EXPECT_EQ(end.accuracy, std::nullopt);
}

TEST(RunEvents, LinesThatAreNoEventAreNone) {
  for (const char* line : {"", "{", "[]", "3", R"({"event":"train","time":1,"step":)", R"({"event":"other","time":1})",
                           R"({"event":"train","time":"x"})", R"({"event":"train","time":1,"step":"x"})",
                           R"({"event":7,"time":1})", R"({"event":"eval","epoch":"0"})"})
    EXPECT_FALSE(from_line(line)) << line;
}

/// What is wrong with a line.
std::string problem_of(const std::string& line) {
  std::string problem;
  EXPECT_FALSE(from_line(line, problem)) << line;
  return problem;
}

std::string repeated(const char* text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(RunEvents, AreRejectedWithTheMemberThatCannotBe) {
  for (const auto& [line, problem] : {
           std::pair(R"({"event":"train","time":1e300})", "time is 1e+300, expected seconds since 1970"),
           std::pair(R"({"event":"train","time":-1})", "time is -1"),
           std::pair(R"({"event":"train"})", "time is null"),
           std::pair(R"({"event":"header","time":1,"ranks":2000000000})",
                     "ranks is 2000000000, expected a whole number from 0 to 131072"),
           std::pair(R"({"event":"header","time":1,"total_steps":9223372036854775807})",
                     "total_steps is 9223372036854775807"),
           std::pair(R"({"event":"train","time":1,"step":18446744073709551616})", "step is 1.8446744073709552e+19"),
           std::pair(R"({"event":"train","time":1,"step":1.5})", "step is 1.5"),
           std::pair(R"({"event":"train","time":1,"step":-1})", "step is -1"),
           std::pair(R"({"event":"train","time":1,"seconds":1e11})", "seconds is 1"),
           std::pair(R"({"event":"eval","time":1,"accuracy":1.5})", "accuracy is 1.5, expected a number from 0 to 1"),
           std::pair(R"({"event":"eval","time":1,"ema_accuracy":"a"})", "ema_accuracy is \"a\""),
           std::pair(R"({"event":"restart","time":1,"attempt":4294967296})", "attempt is 4294967296"),
           std::pair(R"({"event":"end","time":1,"peak_memory":{"gradients":-1}})", "gradients is -1"),
           std::pair(R"({"event":"ranks","time":1,"memory":[1,-5]})", "memory is -5"),
           std::pair(R"({"event":"ranks","time":1,"seconds":{"a":1}})", "seconds is an object, expected a list"),
           std::pair(R"({"event":"header","time":1,"tags":["a",1]})", "tags is a list of other values"),
           std::pair(R"({"event":"header","time":1,"config":7})", "config is 7, expected an object"),
           std::pair(R"({"event":"header","time":1,"name":[]})", "name is a list, expected a text"),
           std::pair(R"({"event":"header","time":1,"parameter_groups":[3]})",
                     "parameter_groups is a list of other values, expected a list of objects"),
           std::pair(R"({"event":"header","time":1,"parameter_groups":[{"tensors":-1}]})", "tensors is -1"),
           std::pair(R"({"event":"train","time":1,"epoch":1e99})", "epoch is 1e+99"),
       })
    EXPECT_THAT(problem_of(line), HasSubstr(problem));
  EXPECT_THAT(problem_of(R"({"event":"ranks","time":1,"seconds":[)" + repeated("1,", kMostRanks) + "1]}"),
              HasSubstr("seconds is a list of 131073, expected at most 131072 values"));
  EXPECT_TRUE(from_line(R"({"event":"header","time":253402300799,"ranks":131072,"total_steps":9007199254740992})"));
}

/// A parser copies levels by recursion, and compares each member of an object with all others.
TEST(RunEvents, OfTooManyLevelsMembersOrValuesAreNotParsed) {
  constexpr int kMany = 1 << 21;
  EXPECT_EQ(
      problem_of(R"({"event":"header","time":1,"config":{"a":)" + repeated("[", kMany) + repeated("]", kMany) + "}}"),
      "it has more than 64 levels");
  std::string members;
  for (int i = 0; i < kMany / 8; ++i) members += ",\"m" + std::to_string(i) + "\":1";
  EXPECT_EQ(problem_of(R"({"event":"header","time":1)" + members + "}"), "an object has more than 1024 members");
  EXPECT_EQ(problem_of(R"({"event":"header","time":1,"tags":[)" + repeated("[],", kMany) + "[]]}"),
            "it has more than 1048576 values");
  EXPECT_EQ(problem_of("\"" + repeated("[{:,\\\"", 100)), "it is not JSON") << "what is in strings does not count";
}

}  // namespace
}  // namespace gradring::train
