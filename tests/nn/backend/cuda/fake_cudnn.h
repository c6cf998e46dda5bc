// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nn/backend/cuda/cudnn_api.h"
#include "tests/nn/backend/cuda/cudnn_record.h"

namespace gradring::tests {

/// An engine that the fake's heuristics name.
struct FakeEngine {
  std::int64_t index = 0;
  std::vector<cudnnBackendNumericalNote_t> notes;
  std::int64_t workspace_bytes = 0;
  bool compiles = true;
  std::vector<std::pair<cudnnBackendKnobType_t, std::int64_t>> knobs;
};

/// cuDNN's backend API for convolutions, on the CPU: descriptors are bags of attributes, the heuristics name what the real
/// ones offered for an H100 (CudnnRecord) or what the test says, and a plan is executed by plain loops over the extents
/// and strides that its graph was given. So it computes what cuDNN would only if every descriptor says what it should. The
/// workspace is filled with rubbish, as far as it was asked for. Executing takes the tensors of the graph and no others.
///
/// Threads   one; one at a time.
class FakeCudnn {
 public:
  FakeCudnn();
  ~FakeCudnn();
  FakeCudnn(const FakeCudnn&) = delete;
  FakeCudnn& operator=(const FakeCudnn&) = delete;

  nn::CudnnApi api() const;

  std::optional<std::vector<FakeEngine>> mode_a;  ///< nullopt: what is recorded for the graph
  std::vector<FakeEngine> mode_b;
  std::vector<FakeEngine> fallback;
  bool fuses = true;    ///< whether it knows graphs of several operations
  bool f32_dw = false;  ///< whether it also gives f32 gradients of 16-bit weights; the real one did not
  int live_descriptors = 0;
  std::vector<std::int64_t> executed;  ///< the engines that ran
  std::vector<std::string> graphs;     ///< that were finalized, as CudnnRecord::find names them
  CudnnRecord record = CudnnRecord::read();
};

}  // namespace gradring::tests
