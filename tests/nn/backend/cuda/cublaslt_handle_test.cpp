// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cuda/cublaslt.h"
#include "tests/nn/backend/cuda/handles_test.h"

namespace gradring::tests {
namespace {

class CublasLtHandle : public LibraryHandle {
 protected:
  std::shared_ptr<void> make() {
    nn::CublasLtApi api;
    api.create = [](cublasLtHandle_t* handle) {
      static int anything = 0;
      *handle = reinterpret_cast<cublasLtHandle_t>(&anything);
      return CUBLAS_STATUS_SUCCESS;
    };
    api.destroy = [](cublasLtHandle_t) {
      note_destruction();
      return CUBLAS_STATUS_SUCCESS;
    };
    return std::make_shared<nn::CublasLt>(api, device_);
  }
};

TEST_F(CublasLtHandle, IsDestroyedOnItsDevice) {
  expect_destruction_on_its_device([&] { return make(); });
}

TEST_F(CublasLtHandle, IsNotDestroyedOnALostDevice) {
  expect_no_destruction_on_a_lost_device([&] { return make(); });
}

}  // namespace
}  // namespace gradring::tests
