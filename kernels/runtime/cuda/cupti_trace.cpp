// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/cupti_trace.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/runtime/cuda/cupti_api.h"
#include "kernels/runtime/cuda/gpu_activities.h"

namespace gradring::kernels {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr std::size_t kMostActivities = std::size_t{1} << 20;

/// Not GRAPH_TRACE: with it CUPTI reports a graph as one activity, and its kernels not at all.
constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                         CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET};

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

/// What a record of CUPTI says, of the kinds CONCURRENT_KERNEL, KERNEL, MEMCPY, MEMCPY2 (between GPUs) and MEMSET; of
/// others nothing. The name lives as long as the record.
///
/// CUPTI writes the newest type of record that the library knows, whatever the headers of this build have. We read the
/// members that all versions since CUDA 11.1 (Kernel5, Memcpy4, MemcpyPtoP3, Memset3) have at the same offsets; the
/// assertions above compare the next versions', and the tests those of CUDA 13.
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

/// Receives CUPTI's buffers, on CUPTI's threads and ours.
class Receiver {
 public:
  /// Forgets what was received, and buffers that are lost by now. `api` reads buffers from now on.
  void begin(const CuptiApi& api) {
    const std::lock_guard lock(mutex_);
    api_ = api;
    records_ = {};
    names_.clear();
    std::erase_if(given_, has_records);
  }
  /// What was received since then; names live until the next begin().
  GpuRecords take() {
    const std::lock_guard lock(mutex_);
    records_.lost_buffers = static_cast<std::size_t>(std::ranges::count_if(given_, has_records));
    return std::exchange(records_, {});
  }

  std::uint8_t* give() {
    auto* const buffer = new (std::nothrow) std::uint8_t[kBufferBytes];
    if (!buffer) return nullptr;
    std::memset(buffer, 0, sizeof(CUpti_Activity));  // for has_records
    const std::lock_guard lock(mutex_);
    given_.insert(buffer);
    return buffer;
  }
  void receive(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes > 0) read(buffer, bytes);
    std::size_t dropped = 0;
    if (api_.get_num_dropped(context, stream, &dropped) == CUPTI_SUCCESS) records_.dropped += dropped;
    given_.erase(buffer);
    delete[] buffer;
  }

 private:
  /// CUPTI may keep a buffer in which it has written nothing yet.
  static bool has_records(const std::uint8_t* buffer) {
    CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_INVALID;
    std::memcpy(&kind, buffer, sizeof kind);
    return kind != CUPTI_ACTIVITY_KIND_INVALID;
  }

  void read(std::uint8_t* buffer, std::size_t bytes) {
    CUpti_Activity* record = nullptr;
    CUptiResult result = CUPTI_SUCCESS;
    while ((result = api_.get_next_record(buffer, bytes, &record)) == CUPTI_SUCCESS)
      if (auto activity = decode(*record)) keep(*activity);
    records_.unreadable_buffers += result != CUPTI_ERROR_MAX_LIMIT_REACHED;
  }
  void keep(GpuActivity& activity) {
    if (records_.activities.size() == kMostActivities) {
      ++records_.without_room;
      return;
    }
    activity.name = names_.insert(activity.name).first->c_str();
    records_.activities.push_back(activity);
  }

  std::mutex mutex_;
  CuptiApi api_;
  GpuRecords records_;
  std::set<std::string, std::less<>> names_;
  std::set<std::uint8_t*> given_;
};

/// CUPTI's callbacks carry no pointer of ours, and come until the process ends: it is never destroyed.
Receiver& receiver() {
  static Receiver& receiver = *new Receiver;
  return receiver;
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer = receiver().give();
  *bytes = *buffer ? kBufferBytes : 0;
  *most_records = 0;  // as many as fit
}

void CUPTIAPI receive_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                             std::size_t bytes) {
  receiver().receive(context, stream, buffer, bytes);
}

class CuptiTrace final : public DeviceTrace {
 public:
  /// CUPTI must have recorded before the first CUDA graph is captured: programs that began later crashed or hung
  /// (pytorch/pytorch#75504). So it begins and ends once here. cuptiFinalize, which graphs do not survive either, is
  /// never called.
  explicit CuptiTrace(const CuptiApi& api) : api_(api) {
    receiver().begin(api_);
    cupti_check(api_, api_.register_callbacks(&give_buffer, &receive_buffer), "cuptiActivityRegisterCallbacks");
    enable();
    disable();
  }
  ~CuptiTrace() override { disable(); }

  void start() override {
    cupti_check(api_, api_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
    receiver().begin(api_);
    first_ = read_clocks();
    enable();
  }

  DeviceActivities stop() override {
    const ClockPair last = read_clocks();
    disable();
    cupti_check(api_, api_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
    return to_tracks(receiver().take(), first_, last);
  }

 private:
  void enable() {
    try {
      for (const CUpti_ActivityKind kind : kKinds) {
        cupti_check(api_, api_.enable(kind), "cuptiActivityEnable");
        enabled_.insert(kind);
      }
    } catch (const DeviceError&) {
      disable();
      throw;
    }
  }
  void disable() noexcept {
    for (const CUpti_ActivityKind kind : std::exchange(enabled_, {})) (void)api_.disable(kind);
  }

  /// The best of several attempts, of which some are interrupted.
  ClockPair read_clocks() const {
    constexpr int kAttempts = 16;
    ClockPair best{.accuracy = std::numeric_limits<std::int64_t>::max()};
    for (int i = 0; i < kAttempts; ++i) {
      std::uint64_t device = 0;
      const std::int64_t before = TraceTrack::now();
      cupti_check(api_, api_.get_timestamp(&device), "cuptiGetTimestamp");
      const std::int64_t distance = TraceTrack::now() - before;
      if (distance / 2 < best.accuracy) best = {before + distance / 2, device, distance / 2};
    }
    return best;
  }

  CuptiApi api_;
  ClockPair first_;
  std::set<CUpti_ActivityKind> enabled_;
};

}  // namespace

std::unique_ptr<DeviceTrace> make_cupti_trace() { return std::make_unique<CuptiTrace>(CuptiApi::load()); }

std::unique_ptr<DeviceTrace> make_cupti_trace(const std::string& file) {
  return std::make_unique<CuptiTrace>(CuptiApi::open(file));
}

}  // namespace gradring::kernels
