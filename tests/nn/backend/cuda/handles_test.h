// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <optional>

#include "tests/kernels/runtime/cuda/fake_cuda_test.h"

namespace gradring::tests {

/// The device that was current when a library's handle was destroyed. A global: the library's functions are pointers.
inline std::optional<int> destroyed_on;

inline void note_destruction() {
  int device = -1;
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  destroyed_on = device;
}

/// What owns a library's handle destroys it with its device current, on whatever thread; not at all if that fails.
class LibraryHandle : public kernels::FakeCudaTest {
 protected:
  LibraryHandle() { destroyed_on.reset(); }

  /// `make` makes the owner.
  void expect_destruction_on_its_device(const std::function<std::shared_ptr<void>()>& make) {
    std::shared_ptr<void> owner = make();
    on_new_thread([&] { owner.reset(); });
    EXPECT_EQ(destroyed_on, kernels::kDevice);
  }
  void expect_no_destruction_on_a_lost_device(const std::function<std::shared_ptr<void>()>& make) {
    std::shared_ptr<void> owner = make();
    fake().lost = true;
    on_new_thread([&] { owner.reset(); });
    fake().lost = false;
    EXPECT_EQ(destroyed_on, std::nullopt);
  }

  kernels::CudaDevice device_{kernels::kDevice};
};

}  // namespace gradring::tests
