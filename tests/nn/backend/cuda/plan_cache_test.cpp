// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cuda/plan_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string_view>

#include "tests/support/temp_folder.h"
#include "tests/train/support/file_size_limit.h"

namespace gradring::nn {
namespace {

TEST(PlanCache, RemembersFromRunToRunMachineByMachine) {
  const tests::TempFolder folder;
  const auto file = folder.path() / "cache" / "plans.json";
  PlanCache h200(file, "H200; cuDNN 91900");
  EXPECT_EQ(h200.find("forward"), std::nullopt);
  h200.store("forward", "engine 3");
  PlanCache a100(file, "A100; cuDNN 91900");
  EXPECT_EQ(a100.find("forward"), std::nullopt);
  a100.store("forward", "engine 4");
  h200.store("wgrad", "engine 5 knobs 2=1");

  EXPECT_EQ(PlanCache(file, "H200; cuDNN 91900").find("forward"), "engine 3");
  EXPECT_EQ(PlanCache(file, "H200; cuDNN 91900").find("wgrad"), "engine 5 knobs 2=1");
  EXPECT_EQ(PlanCache(file, "A100; cuDNN 91900").find("forward"), "engine 4");
  EXPECT_EQ(PlanCache(file, "H200; cuDNN 92000").find("forward"), std::nullopt);
}

TEST(PlanCache, KeepsNothingWithoutAFile) {
  PlanCache cache({}, "H200");
  cache.store("forward", "engine 3");
  EXPECT_EQ(cache.find("forward"), "engine 3");
  EXPECT_EQ(PlanCache({}, "H200").find("forward"), std::nullopt);
}

TEST(PlanCache, TakesAFileOfSomethingElseAsEmpty) {
  const tests::TempFolder folder;
  for (const std::string_view text : {"", "{", "[1, 2]", R"({"H200": 3})", R"({"H200": {"forward": 3}})"}) {
    const auto file = folder.write("plans.json", tests::Bytes(text.begin(), text.end()));
    PlanCache cache(file, "H200");
    EXPECT_EQ(cache.find("forward"), std::nullopt) << text;
    cache.store("forward", "engine 3");
    EXPECT_EQ(PlanCache(file, "H200").find("forward"), "engine 3") << text;
  }
}

TEST(PlanCache, WaitsForNoFifo) {
  const tests::TempFolder folder;
  const auto file = folder.path() / "plans.json";
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  PlanCache cache(file, "H200");
  cache.store("forward", "engine 3");
  EXPECT_EQ(PlanCache(file, "H200").find("forward"), "engine 3");
}

TEST(PlanCache, KeepsTheOldFileOnAFullDisk) {
  const tests::TempFolder folder;
  const auto file = folder.path() / "plans.json";
  PlanCache cache(file, "H200");
  cache.store("forward", "engine 3");
  const tests::FileSizeLimit full(100);
  cache.store("wgrad", std::string(200, 'w'));
  EXPECT_EQ(PlanCache(file, "H200").find("forward"), "engine 3");
}

TEST(PlanCache, GoesOnWhereItCannotBeWritten) {
  PlanCache cache("/proc/nowhere/plans.json", "H200");
  cache.store("forward", "engine 3");
  EXPECT_EQ(cache.find("forward"), "engine 3");
}

}  // namespace
}  // namespace gradring::nn
