// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "kernels/host/host_device.h"

namespace gradring::simt_test {

constexpr std::uint64_t kSeed = 7;  // of ThreadOrder::random

inline std::string name_of(simt::ThreadOrder order) {
  switch (order) {
    case simt::ThreadOrder::forward: return "forward";
    case simt::ThreadOrder::reverse: return "reverse";
    case simt::ThreadOrder::random: return "random";
  }
  return "?";
}

/// A CPU device that runs threads in one of the three orders, with poisoned shared memory, on two OS threads. A correct
/// kernel gives the same result in each.
class EachOrder : public testing::TestWithParam<simt::ThreadOrder> {
 protected:
  kernels::HostDevice device_{
      simt::ExecutorOptions{.workers = 2, .order = GetParam(), .seed = kSeed, .poison_shared = true}};
  std::unique_ptr<kernels::Stream> stream_ = device_.make_stream(kernels::StreamMode::in_place);
};

}  // namespace gradring::simt_test

#define SIMT_IN_EACH_ORDER(Suite)                                                                                      \
  INSTANTIATE_TEST_SUITE_P(Orders, Suite,                                                                              \
                           testing::Values(gradring::simt::ThreadOrder::forward, gradring::simt::ThreadOrder::reverse, \
                                           gradring::simt::ThreadOrder::random),                                       \
                           [](const auto& order) { return gradring::simt_test::name_of(order.param); })
