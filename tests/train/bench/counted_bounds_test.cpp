// SPDX-License-Identifier: Apache-2.0
#include "train/bench/counted_bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "train/options/usage_error.h"

namespace gradring::train::bench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Of the variant "flat": 10 us, of which its instructions need 4.
BenchResult counted() {
  BenchResult result{.path = "counted.json", .benchmark = "kernels"};
  for (const auto& [counter, microseconds] :
       {std::pair("bound of the time", 10.0), std::pair("bound of the instructions", 4.0),
        std::pair("registers", 40.0)})
    result.measurements.push_back({.key = {{"case", "relu forward"},
                                           {"shape", "elements=1000"},
                                           {"dtype", "f16"},
                                           {"variant", "flat"},
                                           {"device", "simulated h100"},
                                           {"counter", counter}},
                                   .samples = {microseconds}});
  return result;
}

std::string contradiction(double hot_us, double flushed_us, const std::string& variant = "flat") {
  kernels::bench::KernelCase c{.name = "relu forward", .shape = "elements=1000", .dtype = kernels::DType::f16};
  kernels::bench::Measured measured{.name = variant};
  measured.hot.least = hot_us / kMicroseconds;
  measured.flushed.least = flushed_us / kMicroseconds;
  return CountedBounds(counted()).contradiction(c, measured);
}

TEST(CountedBounds, RejectTimesThatNoCardReaches) {
  EXPECT_THAT(contradiction(5, 12), IsEmpty());
  EXPECT_THAT(contradiction(3.7, 9.1), IsEmpty()) << "machine instructions are estimated";
  EXPECT_THAT(contradiction(3, 12), AllOf(HasSubstr("3.00 us hot"), HasSubstr("bound of the instructions of 4.00 us")));
  EXPECT_THAT(contradiction(5, 8), AllOf(HasSubstr("8.00 us flushed"), HasSubstr("bound of the time of 10.00 us")));
  EXPECT_THAT(contradiction(0, 0, "tiled"), IsEmpty()) << "of which nothing is known";
}

TEST(CountedBounds, NeedAFileWithBounds) {
  BenchResult times = counted();
  for (BenchMeasurement& each : times.measurements) each.key.pop_back();
  EXPECT_THROW(CountedBounds{times}, UsageError);
}

}  // namespace
}  // namespace gradring::train::bench
