// SPDX-License-Identifier: Apache-2.0
#include "train/bench/result_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "data/files/byte_source.h"
#include "train/bench/result_variants.h"
#include "train/options/usage_error.h"

namespace gradring::train::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Normally distributed repetitions: `noise` is their standard deviation as a fraction of the median.
std::vector<double> repetitions(double median, double noise, std::uint64_t seed, int count = 40) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> distribution(median, noise * median);
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) samples.push_back(distribution(random));
  return samples;
}

BenchResult result_with(std::vector<double> samples, Better better = Better::lower) {
  return {.path = "a.json",
          .benchmark = "kernels",
          .commit = "1234567",
          .measurements = {
              {.key = {{"variant", "flat"}, {"cache", "hot"}}, .samples = std::move(samples), .better = better}}};
}

DiffVerdict verdict(const BenchResult& before, const BenchResult& after, const DiffSpec& spec = {}) {
  return diff_results(before, after, spec).rows.at(0).verdict;
}

TEST(ResultDiff, FindsAPlantedChangeAboveTheNoiseAndNoneBelow) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const auto old_quiet = result_with(repetitions(100, 0.02, seed));
    EXPECT_EQ(verdict(old_quiet, result_with(repetitions(110, 0.02, seed + 1000))), DiffVerdict::slower) << seed;
    EXPECT_EQ(verdict(old_quiet, result_with(repetitions(90, 0.02, seed + 1000))), DiffVerdict::faster) << seed;
    EXPECT_EQ(verdict(old_quiet, result_with(repetitions(100, 0.02, seed + 1000))), DiffVerdict::same) << seed;
    const auto old_noisy = result_with(repetitions(100, 0.05, seed));
    EXPECT_EQ(verdict(old_noisy, result_with(repetitions(101, 0.05, seed + 1000))), DiffVerdict::same) << seed;
  }
}

TEST(ResultDiff, KnowsRatesAndThresholdsAndTooFewRepetitions) {
  const auto before = result_with({100, 101, 100, 99, 100});
  EXPECT_EQ(verdict(result_with({100, 101, 100, 99, 100}, Better::higher),
                    result_with({80, 81, 80, 79, 80.5}, Better::higher)),
            DiffVerdict::slower);
  EXPECT_EQ(verdict(before, result_with({102, 102.1, 102.2, 102.3, 102.4})), DiffVerdict::same)
      << "single runs of one program differ by so much";
  EXPECT_EQ(verdict(before, result_with({102, 102.1, 102.2, 102.3, 102.4}), {.threshold = 0.01}), DiffVerdict::slower);
  EXPECT_EQ(verdict(before, result_with({150, 151, 152, 153})), DiffVerdict::unknown);
  EXPECT_EQ(verdict(before, result_with({150}), {.threshold = 0.4}), DiffVerdict::slower);
}

TEST(ResultDiff, CountsARunAsOneRepetitionWhereThereAreSeveral) {
  std::vector<BenchResult> before, after;
  for (const double median : {100.0, 100.4, 99.8, 100.1, 100.2}) {
    before.push_back(result_with({median - 20, median, median + 20}));  // the noise within a run does not count
    after.push_back(result_with({median - 20, median + 1.5, median + 30}));
  }
  const BenchResult one_side = merged(before);
  EXPECT_THAT(one_side.measurements.at(0).samples, ElementsAre(100, 100.4, 99.8, 100.1, 100.2));
  EXPECT_EQ(verdict(one_side, merged(after)), DiffVerdict::slower) << "by 1.5 %, and runs differ by less";
  after.back().benchmark = "step";
  EXPECT_THROW(merged(after), data::DataError);
}

TEST(ResultDiff, ListsRowsOfOneFileAndIgnoresMembers) {
  BenchResult before = result_with({1, 1, 1, 1, 1}), after = before;
  after.measurements[0].key = {{"cache", "hot"}, {"variant", "tiled"}};
  ResultDiff diff = diff_results(before, after, {});
  EXPECT_TRUE(diff.rows.empty());
  EXPECT_THAT(diff.only_old, ElementsAre(before.measurements[0].key));
  EXPECT_THAT(diff.only_new, ElementsAre(after.measurements[0].key));
  diff = diff_results(before, after, {.ignored = {"variant"}});
  ASSERT_EQ(diff.rows.size(), 1u);
  EXPECT_EQ(diff.rows[0].verdict, DiffVerdict::same);
  after.measurements.push_back(after.measurements[0]);
  after.measurements[1].key = {{"cache", "hot"}, {"variant", "mma"}};
  EXPECT_THROW(diff_results(before, after, {.ignored = {"variant"}}), UsageError) << "two rows become equal";
  after.benchmark = "step";
  EXPECT_THROW(diff_results(before, after, {}), UsageError);
}

TEST(ResultDiff, ComparesRowsOfEqualKeysWithEachOtherBeforeItIgnoresMembers) {
  const auto rows = [](const std::vector<std::string>& variants) {
    BenchResult result = result_with({1, 1, 1, 1, 1});
    result.measurements.clear();
    for (const std::string& variant : variants)
      for (const char* cache : {"hot", "flushed"})
        result.measurements.push_back({.key = {{"variant", variant}, {"cache", cache}}, .samples = {1, 1, 1, 1, 1}});
    return result;
  };
  const DiffSpec spec{.ignored = {"variant"}};
  const ResultDiff diff = diff_results(rows({"strips", "onednn"}), rows({"onednn", "tiled"}), spec);
  std::vector<MeasurementKey> keys;
  for (const DiffRow& row : diff.rows) keys.push_back(row.key);
  EXPECT_THAT(keys, ElementsAre(MeasurementKey{{"variant", "onednn"}, {"cache", "hot"}},
                                MeasurementKey{{"variant", "onednn"}, {"cache", "flushed"}},
                                MeasurementKey{{"cache", "hot"}}, MeasurementKey{{"cache", "flushed"}}));
  EXPECT_TRUE(diff.only_old.empty() && diff.only_new.empty());
  EXPECT_EQ(diff_results(rows({"strips", "onednn"}), rows({"strips", "onednn"}), spec).rows.size(), 4u);
  EXPECT_THROW(diff_results(rows({"strips", "onednn"}), rows({"tiled", "mma", "onednn"}), spec), UsageError);
}

/// Results with one counter.
BenchResult counted(double instructions, double registers) {
  BenchResult result = result_with({instructions});
  result.measurements[0].is_exact = true;
  result.measurements.push_back(
      {.key = {{"counter", "registers"}}, .samples = {registers}, .better = Better::neither, .is_exact = true});
  return result;
}

TEST(ResultDiff, TakesEachDifferenceOfACounterForOne) {
  const auto verdicts = [](const BenchResult& before, const BenchResult& after, const DiffSpec& spec = {}) {
    std::vector<DiffVerdict> all;
    for (const DiffRow& row : diff_results(before, after, spec).rows) all.push_back(row.verdict);
    return all;
  };
  const BenchResult before = counted(1000, 40);
  EXPECT_THAT(verdicts(before, before), ElementsAre(DiffVerdict::same, DiffVerdict::same));
  EXPECT_THAT(verdicts(before, counted(1001, 41)), ElementsAre(DiffVerdict::slower, DiffVerdict::changed));
  EXPECT_THAT(verdicts(before, counted(999, 39)), ElementsAre(DiffVerdict::faster, DiffVerdict::changed));
  EXPECT_THAT(verdicts(before, counted(1001, 80), {.threshold = 0.05}),
              ElementsAre(DiffVerdict::same, DiffVerdict::changed));
}

TEST(ResultVariants, ArePutSideBySideForEachWork) {
  BenchResult result = result_with({1});
  result.measurements.clear();
  for (const char* name : {"gemm", "bias"})
    for (const char* variant : {"strips", "mma"})
      for (const char* counter : {"load sectors", "registers"})
        if (std::string_view(name) == "gemm" || std::string_view(variant) == "strips")
          result.measurements.push_back(
              {.key = {{"case", name}, {"variant", variant}, {"counter", counter}}, .samples = {variant[0] * 1.0}});
  const std::vector<VariantsGroup> groups = variants_of(result);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_THAT(groups[0].work, ElementsAre(MeasurementKey::value_type{"case", "gemm"}));
  EXPECT_THAT(groups[0].variants, ElementsAre("strips", "mma"));
  ASSERT_EQ(groups[0].rows.size(), 2u);
  EXPECT_THAT(groups[0].rows[1].key, ElementsAre(MeasurementKey::value_type{"counter", "registers"}));
  EXPECT_THAT(groups[0].rows[1].medians, ElementsAre('s', 'm'));
  EXPECT_THAT(groups[1].variants, ElementsAre("strips"));
  for (BenchMeasurement& each : result.measurements) each.key = {{"batch_size", "64"}};
  EXPECT_THROW(variants_of(result), UsageError) << "there are no variants";
}

TEST(ResultDiff, WarnsWhereMachineClockOrCommitMayMislead) {
  BenchResult before = result_with({1, 1, 1, 1, 1}), after = before;
  EXPECT_TRUE(diff_results(before, after, {}).warnings.empty());
  before.environment = {{"CPU level", "x86-64-v3"}};
  after.environment = {{"CPU level", "x86-64-v4"}};
  before.cpu_mhz = 3000;
  after.cpu_mhz = 2000;
  after.commit = "1234567-dirty";
  after.warnings = {"the machine is loaded"};
  EXPECT_THAT(diff_results(before, after, {}).warnings,
              ElementsAre(HasSubstr("CPU level differs"), HasSubstr("3000 MHz in the old file, but 2000 MHz"),
                          HasSubstr("'1234567-dirty'"), HasSubstr("the machine is loaded")));
}

}  // namespace
}  // namespace gradring::train::bench
