// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/cupti_records.h"

#include <cstddef>

namespace gradring::kernels {
namespace {

using Kernel = CUpti_ActivityKernel5;
using Memcpy = CUpti_ActivityMemcpy4;
using PeerMemcpy = CUpti_ActivityMemcpyPtoP3;
using Memset = CUpti_ActivityMemset3;

static_assert(offsetof(Kernel, graphId) == offsetof(CUpti_ActivityKernel9, graphId));
static_assert(offsetof(Kernel, start) == offsetof(CUpti_ActivityKernel9, start));
static_assert(offsetof(Kernel, name) == offsetof(CUpti_ActivityKernel9, name));
static_assert(offsetof(Memcpy, graphId) == offsetof(CUpti_ActivityMemcpy5, graphId));
static_assert(offsetof(PeerMemcpy, graphId) == offsetof(CUpti_ActivityMemcpyPtoP4, graphId));
static_assert(offsetof(Memset, graphId) == offsetof(CUpti_ActivityMemset4, graphId));

const char* name_of_copy(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD: return "memcpy host to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH: return "memcpy device to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD: return "memcpy within the device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH: return "memcpy within the host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP: return "memcpy between devices";
    default: return "memcpy";
  }
}

/// What all types of records have.
template <class Record>
GpuActivity common(const Record& record, TraceCategory category, const char* name) {
  return {.category = category,
          .name = name,
          .begin = record.start,
          .end = record.end,
          .device = record.deviceId,
          .stream = record.streamId,
          .numbers = {}};
}

GpuActivity decode_kernel(const Kernel& record) {
  GpuActivity kernel = common(record, TraceCategory::kernel, record.name ? record.name : "kernel");
  const auto product = [](std::int64_t x, std::int64_t y, std::int64_t z) { return x * y * z; };
  kernel.numbers = {product(record.gridX, record.gridY, record.gridZ),
                    product(record.blockX, record.blockY, record.blockZ), record.registersPerThread, record.graphId};
  return kernel;
}

template <class Record>
GpuActivity decode_bytes(const Record& record, TraceCategory category, const char* name) {
  GpuActivity activity = common(record, category, name);
  activity.numbers = {static_cast<std::int64_t>(record.bytes), record.graphId};
  return activity;
}

}  // namespace

std::optional<GpuActivity> decode(const CUpti_Activity& record) {
  const void* const data = &record;
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return decode_kernel(*static_cast<const Kernel*>(data));
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = *static_cast<const Memcpy*>(data);
      return decode_bytes(copy, TraceCategory::memcpy, name_of_copy(copy.copyKind));
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
      const auto& copy = *static_cast<const PeerMemcpy*>(data);
      return decode_bytes(copy, TraceCategory::memcpy, name_of_copy(copy.copyKind));
    }
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return decode_bytes(*static_cast<const Memset*>(data), TraceCategory::memset, "memset");
    default: return std::nullopt;
  }
}

}  // namespace gradring::kernels
