// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cuda/cudnn.h"
#include "tests/nn/backend/cuda/handle_calls.h"
#include "tests/nn/backend/cuda/handles_test.h"

namespace gradring::tests {
namespace {

class CudnnHandle : public LibraryHandle {
 protected:
  std::shared_ptr<void> make() {
    nn::CudnnApi api;
    api.get_version = [] { return std::size_t{CUDNN_VERSION}; };
    fake_handle(api);
    api.destroy = [](cudnnHandle_t) {
      note_destruction();
      return CUDNN_STATUS_SUCCESS;
    };
    return std::make_shared<nn::Cudnn>(api, device_, nn::CudaBackendOptions());
  }
};

TEST_F(CudnnHandle, IsDestroyedOnItsDevice) {
  expect_destruction_on_its_device([&] { return make(); });
}

TEST_F(CudnnHandle, IsNotDestroyedOnALostDevice) {
  expect_no_destruction_on_a_lost_device([&] { return make(); });
}

}  // namespace
}  // namespace gradring::tests
