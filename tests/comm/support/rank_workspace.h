// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/process_group.h"
#include "kernels/host/host_device.h"

namespace gradring::tests {

/// One rank's stream and segment of 1000 floats.
struct RankWorkspace {
  explicit RankWorkspace(comm::ProcessGroup& group)
      : stream(device.make_stream(kernels::StreamMode::in_place)), segment(group.allocate(1000 * sizeof(float))) {}
  comm::SegmentRange range(std::size_t elements = 1000, std::size_t offset = 0,
                           kernels::DType dtype = kernels::DType::f32) const {
    return {.segment = segment.get(), .slice = {offset, elements}, .dtype = dtype};
  }
  kernels::HostDevice device;
  std::unique_ptr<kernels::Stream> stream;
  std::unique_ptr<comm::Segment> segment;
};

}  // namespace gradring::tests
