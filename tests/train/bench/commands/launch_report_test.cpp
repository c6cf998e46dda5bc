// SPDX-License-Identifier: Apache-2.0
#include "train/bench/commands/options.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace gradring::train {
namespace {

kernels::LaunchReport on_a_gpu() {
  return {.kernel = "sum_kernel<float>",
          .blocks = 264,
          .threads = 256,
          .dynamic_shared_bytes = 2048,
          .resources = kernels::LaunchReport::Resources{
              .registers = 40, .static_shared_bytes = 1024, .resident_warps = 48, .most_warps = 64}};
}

TEST(LaunchReportText, SaysWhatAGpuGives) {
  kernels::LaunchReport launch = on_a_gpu();
  EXPECT_EQ(to_string(launch),
            "sum_kernel<float>: 264 x 256 threads, 40 registers, shared 1024 + 2048 B, 48 of 64 warps");
  launch.resources->local_bytes = 16;
  EXPECT_EQ(to_string(launch),
            "sum_kernel<float>: 264 x 256 threads, 40 registers, shared 1024 + 2048 B, 48 of 64 warps, 16 B local");
  EXPECT_EQ(
      to_json(launch).dump(),
      R"({"blocks":264,"dynamic_shared_bytes":2048,"kernel":"sum_kernel<float>","local_bytes":16,"most_warps":64,)"
      R"("registers":40,"resident_warps":48,"static_shared_bytes":1024,"threads":256})");
}

TEST(LaunchReportText, InventsNothingForACpu) {
  kernels::LaunchReport launch = on_a_gpu();
  launch.resources.reset();
  EXPECT_EQ(to_string(launch), "sum_kernel<float>: 264 x 256 threads, shared dynamic 2048 B");
  EXPECT_FALSE(to_json(launch).contains("registers"));
}

}  // namespace
}  // namespace gradring::train
