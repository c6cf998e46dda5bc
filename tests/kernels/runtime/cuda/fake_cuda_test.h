// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <future>

#include "kernels/runtime/cuda/cuda_device.h"
#include "kernels/runtime/cuda/cuda_stream.h"
#include "tests/support/fake_cudart/fake_cudart.h"

namespace gradring::kernels {

/// The device of a rank that is not the first, whose runtime notes what it is asked.
constexpr int kDevice = 2;

class FakeCudaTest : public testing::Test {
 protected:
  FakeCudaTest() { tests::reset_fake_cuda(); }

  static tests::FakeCuda& fake() { return tests::fake_cuda(); }
  static Deadline soon() { return Deadline::after(std::chrono::seconds(30)); }
  /// On a thread that has used no device yet, as a watchdog's.
  static void on_new_thread(const std::function<void()>& work) { std::async(std::launch::async, work).get(); }
};

}  // namespace gradring::kernels
