// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "kernels/runtime/device.h"

namespace gradring::kernels {

/// A device to test on, and how it runs a stream's work.
struct DeviceCase {
  DeviceKind kind;
  StreamMode mode;
};

/// "cpu_in_place"
std::string name_of(const DeviceCase& device_case);

/// The device of a case. Where this build or this machine has no GPU: none, and the reason in `why_not`.
std::unique_ptr<Device> open_device(DeviceKind kind, std::string& why_not);

/// Runs on the CPU, and on the GPU where there is one; skipped, with the reason, where there is none.
class EachDevice : public testing::TestWithParam<DeviceCase> {
 protected:
  void SetUp() override {
    std::string why_not;
    device_ = open_device(GetParam().kind, why_not);
    if (!device_) GTEST_SKIP() << why_not;
  }

  std::unique_ptr<Stream> make_stream() { return device_->make_stream(GetParam().mode); }

  std::unique_ptr<Device> device_;
};

/// Every way to run work, or those alone that run it behind the caller's back.
#define GRADRING_ON_EACH_DEVICE(Suite)                                                              \
  INSTANTIATE_TEST_SUITE_P(Devices, Suite,                                                          \
                           testing::Values(DeviceCase{DeviceKind::cpu, StreamMode::in_place},       \
                                           DeviceCase{DeviceKind::cpu, StreamMode::asynchronous},   \
                                           DeviceCase{DeviceKind::cuda, StreamMode::asynchronous}), \
                           [](const auto& device_case) { return name_of(device_case.param); })
#define GRADRING_ON_EACH_ASYNCHRONOUS_DEVICE(Suite)                                                 \
  INSTANTIATE_TEST_SUITE_P(Devices, Suite,                                                          \
                           testing::Values(DeviceCase{DeviceKind::cpu, StreamMode::asynchronous},   \
                                           DeviceCase{DeviceKind::cuda, StreamMode::asynchronous}), \
                           [](const auto& device_case) { return name_of(device_case.param); })

}  // namespace gradring::kernels
