// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nn/backend/cuda/cudnn_api.h"

namespace gradring::tests {

/// What cuDNN's heuristics ask of a GPU. The rest is equal for those below.
struct GpuModel {
  std::string name;
  int compute_capability = 0;  ///< 80: sm_80
  int multiprocessors = 0;
  std::int64_t shared_bytes_of_block = 0;  ///< that a kernel can opt in to
  std::int64_t memory_bytes = 0;
  std::int64_t l2_bytes = 0;
  int clock_khz = 0;
  int memory_clock_khz = 0;

  /// "sm_90"
  std::string architecture() const { return "sm_" + std::to_string(compute_capability); }
};

GpuModel a100();
GpuModel h100();
/// Turing: no bf16, so that a test can see cuDNN refuse.
GpuModel t4();

/// The real cuDNN planning for a GPU that is described to it and not there (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, cuDNN
/// 9.8 or later): its own graphs, heuristics, support checks and workspace sizes. Executing a plan only notes it.
///
/// Threads   one; one at a time.
class DevicelessCudnn {
 public:
  static constexpr std::size_t kLeastVersion = 90800;

  /// An engine whose plan was executed.
  struct Executed {
    std::int64_t engine = 0;
    std::vector<cudnnBackendNumericalNote_t> notes;
    std::int64_t workspace_bytes = 0;
  };

  /// Why it cannot be used here: the library is missing or too old; nullopt if it can.
  static std::optional<std::string> missing();

  /// Errors    DeviceError if `missing`, or if cuDNN does not take the description.
  explicit DevicelessCudnn(const GpuModel& gpu);
  ~DevicelessCudnn();
  DevicelessCudnn(const DevicelessCudnn&) = delete;
  DevicelessCudnn& operator=(const DevicelessCudnn&) = delete;

  /// The real functions, but for the handle, the device and execution.
  nn::CudnnApi api() const;

  std::vector<Executed> executed;
  int dgrad_operations = 0;  ///< created: gradients of x that a graph was made for
  int wgrad_operations = 0;

 private:
  nn::CudnnApi real_;
  nn::CudnnDescriptor device_;
};

/// "9.19.0" of 91900.
std::string cudnn_version_text(std::size_t version);

}  // namespace gradring::tests
