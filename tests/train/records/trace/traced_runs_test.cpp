// SPDX-License-Identifier: Apache-2.0
// Traces of real runs, judged by trace summary and by check_trace.py.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/json.h"
#include "tests/support/test_python.h"
#include "tests/train/app/commands/support/workplace.h"
#include "tests/train/support/text_of.h"
#include "train/records/metrics/median.h"
#include "train/records/trace/trace_file.h"

namespace gradring::tests {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::AnyOfArray;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class TracedRuns : public ::testing::Test {
 protected:
  /// A training of four ranks with small batches.
  ProgramEnd train(const Words& more) const {
    const Words words = {"train", "--dataset",  "digits", "--run-dir",    "run", "--nprocs", "4",      "--threads",
                         "1",     "--steps",    "12",     "--device",     "cpu", "--trace",  "t.json", "--trace-steps",
                         "3:10",  "--progress", "none",   "--batch-size", "4"};
    return place_.run(tests::joined(words, more));
  }
  json summary_of(const Words& files) const {
    const ProgramEnd end = place_.run(tests::joined({"trace", "summary", "--json"}, files));
    EXPECT_EQ(end.code, 0) << end.err;
    return try_parse_json(end.out);
  }
  train::TraceFile read(const char* name) const {
    const std::filesystem::path path = place_.path(name);
    return train::read_trace(std::span(&path, 1));
  }
  ProgramEnd judge(const char* name) const {
    return run_program(python_script({GRADRING_CHECK_TRACE, name}, place_.folder().path()));
  }

  Workplace place_;
};

TEST_F(TracedRuns, HoldEverythingOfEachStepAndRank) {
  const ProgramEnd end = train({"--save-every-steps", "4", "--eval-every", "6", "--bucket-mb", "0.1",
                                "--first-bucket-mb", "0.01", "--trace", "t.json.gz", "--allreduce", "ring"});
  ASSERT_EQ(end.code, 0) << end.err;
  std::map<std::string, int> counts;
  std::map<std::string, std::set<int>> threads;
  for (const train::TraceSlice& slice : read("t.json.gz").slices) {
    ++counts[slice.category];
    threads[slice.category].insert(slice.track);
  }
  EXPECT_EQ(counts["step"], 4 * 8);
  EXPECT_EQ(counts["data"], 4 * 8);
  EXPECT_EQ(counts["optimizer"], 4 * 8);
  EXPECT_EQ(counts["sync"], 4 * 8);
  EXPECT_GE(counts["transfer"], counts["collective"] * 2 * 3) << "a ring of four ranks has at least six steps";
  EXPECT_EQ(counts["bucket"], counts["collective"]);
  EXPECT_GT(counts["bucket"], 4 * 8 * 2) << "several buckets a step";
  EXPECT_GT(counts["forward"], 4 * 8 * 3) << "several layers a step";
  EXPECT_GT(counts["backward"], 4 * 8 * 3);
  EXPECT_GT(counts["evaluation"], 4);
  EXPECT_GE(counts["loader"], 4 * 3) << "of 8 batches 4 may be prepared before, and one begun";
  EXPECT_THAT(threads["loader"], SizeIs(2)) << "for training and for evaluation";
  EXPECT_THAT(threads["loader"], Each(Not(AnyOfArray(threads["step"])))) << "on threads of their own";
  EXPECT_GE(counts["checkpoint"], 2 * 2) << "the state of two checkpoints, and the writing of at least one";
  const ProgramEnd judged = judge("t.json.gz");
  EXPECT_TRUE(judged.code == 0 || judged.code == kPackageMissing) << judged.out << judged.err;
  EXPECT_THAT(judged.out, HasSubstr("ranks=4 flows=" + std::to_string(counts["bucket"])));
  const json summary = summary_of({"t.json.gz"});
  EXPECT_EQ(summary.at("steps").size(), 8u);
  EXPECT_EQ(summary.at("dropped_events"), 0);
  for (const json& step : summary.at("steps")) {
    double path = 0;
    for (const json& seconds : step.at("critical_path")) path += seconds.get<double>();
    EXPECT_GT(path, 0);
    EXPECT_LE(step.at("compute").get<double>() + step.at("exposed_communication").get<double>(),
              step.at("seconds").get<double>() + 1e-9);
  }
}

TEST_F(TracedRuns, AreReadByPerfetto) {
  const ProgramEnd end = train({"--nprocs", "2", "--eval-every", "6"});
  ASSERT_EQ(end.code, 0) << end.err;
  const ProgramEnd judged = judge("t.json");
  if (judged.code == kPackageMissing) GTEST_SKIP() << judged.out;
  EXPECT_EQ(judged.code, 0) << judged.out << judged.err;
}

/// The delay is compared with what the trace itself measured, since a sleep on a busy machine is longer; the median over
/// the steps decides. How long the others wait depends on their own work, too, so only its part that the delay caused is
/// asserted to 10 %.
TEST_F(TracedRuns, NameTheStragglerAndItsDelay) {
  std::string faults;
  for (int step = 3; step <= 10; ++step)
    faults += (step > 3 ? ";" : "") + std::string("delay:rank=2,ms=30,step=") + std::to_string(step);
  const ProgramEnd end = train({"--inject", faults});
  ASSERT_EQ(end.code, 0) << end.err;
  std::vector<double> delays;
  for (const train::TraceSlice& slice : read("t.json").slices) {
    if (slice.category != "fault") continue;
    EXPECT_EQ(slice.rank, 2);
    delays.push_back(1e-9 * static_cast<double>(slice.end - slice.begin));
  }
  ASSERT_EQ(delays.size(), 8u);
  const double injected = train::median(delays);
  EXPECT_GE(injected, 0.03);
  const json summary = summary_of({"t.json"});
  const json& straggler = summary.at("straggler");
  EXPECT_EQ(straggler.at("rank"), 2);
  EXPECT_EQ(straggler.at("cause"), "fault");
  EXPECT_NEAR(straggler.at("median_cause_delay").get<double>(), injected, 0.1 * injected);
  EXPECT_GE(straggler.at("median_delay").get<double>(), 0.5 * injected);
  EXPECT_THAT(place_.run({"trace", "summary", "t.json"}).out,
              AllOf(HasSubstr("Straggler: rank 2 in "), HasSubstr("ms of it because of fault")));
}

/// How many collectives begin while another thread of their rank computes a layer's gradients.
std::ptrdiff_t overlapping(const std::vector<train::TraceSlice>& slices) {
  return std::ranges::count_if(slices, [&](const train::TraceSlice& one) {
    return one.category == "collective" && std::ranges::any_of(slices, [&](const train::TraceSlice& layer) {
             return layer.category == "backward" && layer.name != "backward" && layer.rank == one.rank &&
                    layer.track != one.track && layer.begin <= one.begin && one.begin < layer.end;
           });
  });
}

TEST_F(TracedRuns, ShowTheOverlapThatIsLost) {
  const auto overlap = [&](const char* on) {
    std::filesystem::remove_all(place_.path("run"));
    // The convolutions' backward comes after the first buckets, and takes long with this batch.
    const ProgramEnd end = train(
        {"--overlap", on, "--bucket-mb", "0.5", "--first-bucket-mb", "0.01", "--nprocs", "2", "--batch-size", "64"});
    EXPECT_EQ(end.code, 0) << end.err;
    return overlapping(read("t.json").slices);
  };
  EXPECT_EQ(overlap("off"), 0);
  EXPECT_LT(summary_of({"t.json"}).at("mean").at("overlap").get<double>(), 0.01) << "all communication is exposed";
  std::ptrdiff_t with = 0;  // also of a right run, if no core was free while the backward pass ran
  for (int tries = 0; with == 0 && tries < 20; ++tries) with = overlap("on");
  EXPECT_GT(with, 0);
}

TEST_F(TracedRuns, SayWhoseEventsAreMissingAfterAKill) {
  const ProgramEnd end = train({"--inject", "kill:rank=2,step=6"});
  ASSERT_NE(end.code, 0);
  const json first = parse_json(text_of(place_.path("t.json")));
  EXPECT_EQ(first.at("metadata").at("missing_ranks"), json({1, 2, 3}));
  EXPECT_THAT(first.at("metadata").at("reason").get<std::string>(), HasSubstr("rank 2"));
  EXPECT_FALSE(std::filesystem::exists(place_.path("t.rank2.json")));
  const json summary = summary_of({"t.json", "t.rank1.json", "t.rank3.json"});
  EXPECT_EQ(summary.at("ranks"), json({0, 1, 3}));
  EXPECT_EQ(summary.at("world_size"), 4);
  EXPECT_GE(summary.at("steps").size(), 3u);
  EXPECT_EQ(summary.at("clock_accuracy_us"), 0) << "one machine";
  EXPECT_TRUE(summary.contains("straggler"));
}

TEST_F(TracedRuns, DoNotCompareClocksOfDifferentMachinesAfterAFailure) {
  ASSERT_NE(train({"--inject", "kill:rank=2,step=6"}).code, 0);
  json other = parse_json(text_of(place_.path("t.rank1.json")));
  json& clock = other.at("metadata").at("clocks").at(0);
  EXPECT_TRUE(clock.at("offset_us").is_null());
  clock.at("boot_id") = "of another machine";
  const std::string text = other.dump();
  place_.folder().write("t.rank1.json", Bytes(text.begin(), text.end()));
  const json summary = summary_of({"t.json", "t.rank1.json"});
  EXPECT_TRUE(summary.at("clock_accuracy_us").is_null());
  EXPECT_FALSE(summary.contains("straggler"));
  EXPECT_TRUE(summary.at("mean").at("critical_path").empty());
  EXPECT_THAT(place_.run({"trace", "summary", "t.json", "t.rank1.json"}).out, HasSubstr("clocks were not compared"));
  EXPECT_THAT(place_.run({"trace", "summary", "t.json"}).out, Not(HasSubstr("clocks were not compared")));
}

TEST_F(TracedRuns, RejectWhatIsNoTrace) {
  for (const char* text :
       {"", "{", "[]", R"({"traceEvents":[]})", R"({"metadata":{"format":"other"},"traceEvents":[]})"}) {
    const std::string bytes(text);
    place_.folder().write("bad.json", Bytes(bytes.begin(), bytes.end()));
    const ProgramEnd end = place_.run({"trace", "summary", "bad.json"});
    EXPECT_EQ(end.code, 4) << text << end.err;
    EXPECT_THAT(end.err, HasSubstr("bad.json"));
  }
  EXPECT_EQ(place_.run({"trace", "summary"}).code, 2);
  EXPECT_EQ(place_.run({"train", "--trace", "t", "--trace-steps", "9:3"}).code, 2);
  EXPECT_EQ(place_.run({"train", "--trace", "t", "--trace-steps", "9"}).code, 2);
}

}  // namespace
}  // namespace gradring::tests
