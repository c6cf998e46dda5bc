// SPDX-License-Identifier: Apache-2.0
#include "data/bench/loader_bench.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "kernels/base/error.h"
#include "kernels/host/host_device.h"

namespace gradring::data::bench {
namespace {

/// Counts how often a label was asked for.
class Counted final : public Dataset {
 public:
  std::string_view name() const override { return "counted"; }
  std::int64_t size() const override { return 10; }
  kernels::Shape shape() const override { return {1, 1, 3}; }
  int classes() const override { return 1; }
  std::span<const std::string> class_names() const override { return names_; }
  std::span<const std::uint8_t> pixels(std::int64_t) const override { return pixels_; }
  int label(std::int64_t) const override {
    ++asked;
    return 0;
  }
  mutable std::atomic<int> asked{0};

 private:
  std::vector<std::string> names_ = numbered_classes(1);
  std::array<std::uint8_t, 3> pixels_{};
};

class LoaderBench : public ::testing::Test {
 protected:
  Counted dataset_;
  kernels::HostDevice device_;
  const LoaderBenchSpec spec_{.batch_size = 4, .epochs = 2, .depth = 3};
};

TEST_F(LoaderBench, FillsEverySampleOfEachEpochAndOneToWarmUp) {
  const auto times = time_filling(dataset_, device_, spec_);
  EXPECT_EQ(times.size(), 2);
  EXPECT_EQ(dataset_.asked, 30);
  for (const EpochTime& time : times) EXPECT_GT(time.wall.count(), 0);
}

TEST_F(LoaderBench, TakesEverySampleThroughTheLoader) {
  EXPECT_EQ(time_loader(dataset_, device_, spec_).size(), 2);
  EXPECT_EQ(dataset_.asked, 30);
}

TEST_F(LoaderBench, RejectsMeasurementsOfNothing) {
  EXPECT_THROW(time_filling(dataset_, device_, {.epochs = 0}), InvalidArgument);
  EXPECT_THROW(time_filling(dataset_, device_, {.batch_size = 0}), InvalidArgument);
  EXPECT_THROW(time_loader(dataset_, device_, {.depth = 0}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::data::bench
