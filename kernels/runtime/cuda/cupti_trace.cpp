// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/cupti_trace.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <set>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/runtime/cuda/cupti_api.h"
#include "kernels/runtime/cuda/cupti_records.h"
#include "kernels/runtime/cuda/gpu_activities.h"

namespace gradring::kernels {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr std::size_t kMostActivities = std::size_t{1} << 20;

/// Not GRAPH_TRACE: with it CUPTI reports a graph as one activity, and its kernels not at all.
constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                         CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET};

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
