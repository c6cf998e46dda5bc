// SPDX-License-Identifier: Apache-2.0
// The arrays of this program's tests end for a kernel where they end for ASan.
#include "tests/kernels/on_simulated_gpu/host_heap.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "tests/support/kernel_variants.h"

namespace gradring::tests {
namespace {

constexpr int kFaultFound = 3;

/// Ends the process.
[[noreturn]] void fill_and_exit(float* y, std::size_t elements) {
  try {
    for_each_variant(kernels::kernel_set().fill, kernels::DType::f32,
                     [&](const auto& variant, kernels::Stream& stream) {
                       variant.run(stream, {.dtype = kernels::DType::f32, .y = y, .elements = elements, .value = 1});
                       finish(stream);
                     });
  } catch (const DeviceError&) {
    std::_Exit(kFaultFound);
  }
  std::_Exit(0);
}

/// In processes of their own, as a simulated GPU does not recover from a fault.
class HostHeapDeathTest : public testing::Test {
 protected:
  HostHeapDeathTest() { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_F(HostHeapDeathTest, EndsBehindTheLastElement) {
  std::vector<float> y(100);
  EXPECT_EXIT(fill_and_exit(y.data(), 100), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(fill_and_exit(y.data(), 101), testing::ExitedWithCode(kFaultFound),
              "behind the end of a block of 400 bytes of pageable host memory");
}

TEST_F(HostHeapDeathTest, HasNoBlockThatWasFreed) {
  EXPECT_EXIT(
      {
        auto y = std::make_unique<float[]>(100'000);
        const volatile auto freed = reinterpret_cast<std::uintptr_t>(y.get());  // or the compiler sees it
        y.reset();
        fill_and_exit(reinterpret_cast<float*>(freed), 100'000);
      },
      testing::ExitedWithCode(kFaultFound), "global memory is written out of bounds");
}

}  // namespace
}  // namespace gradring::tests
