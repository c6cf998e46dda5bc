// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "kernels/bench/measure_case.h"
#include "kernels/simulated_gpu/cudart/simulated_gpu.h"

namespace gradring::train::bench {

/// Asks a simulated GPU which thread and instruction wrote a wrong element: the same launches run again, in the same
/// order of warps and blocks, and the element is watched.
class WriterProbe final : public kernels::bench::ResultProbe {
 public:
  explicit WriterProbe(const simulated_gpu::SimulatedGpu& gpus) : gpus_(gpus) {}

  void before_run(const kernels::bench::WrongElement* element) override;
  /// "written once, by thread (3, 0, 0) of block (1, 0, 0)", kernel, line and instruction; or "nobody wrote it".
  std::string after_run() override;

 private:
  const simulated_gpu::SimulatedGpu& gpus_;
  std::uint64_t first_launch_ = 0;
};

}  // namespace gradring::train::bench
