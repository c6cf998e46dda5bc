// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/nvtx_ranges.h"

#include <nvtx3/nvToolsExt.h>

#include <cstdint>

namespace gradring::kernels {
namespace {

bool is_numbered(TraceCategory category) {
  switch (category) {
    case TraceCategory::step:
    case TraceCategory::bucket:
    case TraceCategory::collective:
    case TraceCategory::checkpoint:
    case TraceCategory::loader: return true;
    default: return false;
  }
}

class NvtxRanges final : public TraceRanges {
 public:
  NvtxRanges() : domain_(nvtxDomainCreateA("gradring")) {
    for (int i = 0; i <= static_cast<int>(TraceCategory::note); ++i)
      nvtxDomainNameCategoryA(domain_, id_of(static_cast<TraceCategory>(i)), name_of(static_cast<TraceCategory>(i)));
  }
  // The domain is never destroyed: a profiler may keep it until the process ends.

  void push(TraceCategory category, const char* name, std::int64_t number) override {
    nvtxEventAttributes_t range{};
    range.version = NVTX_VERSION;
    range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    range.category = id_of(category);
    range.messageType = NVTX_MESSAGE_TYPE_ASCII;
    range.message.ascii = name;
    if (is_numbered(category)) {
      range.payloadType = NVTX_PAYLOAD_TYPE_INT64;
      range.payload.llValue = number;
    }
    nvtxDomainRangePushEx(domain_, &range);
  }
  void pop() override { nvtxDomainRangePop(domain_); }

 private:
  /// 0 is NVTX's for none.
  static std::uint32_t id_of(TraceCategory category) { return 1 + static_cast<std::uint32_t>(category); }

  nvtxDomainHandle_t domain_;  // null without a profiler
};

}  // namespace

std::unique_ptr<TraceRanges> make_nvtx_ranges() { return std::make_unique<NvtxRanges>(); }

}  // namespace gradring::kernels
