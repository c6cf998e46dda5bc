// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_cupti/fake_cupti.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace {

using gradring::tests::FakeActivity;
using gradring::tests::FakeCupti;

// What CUPTI 13 writes.
using Kernel = CUpti_ActivityKernel10;
using Memcpy = CUpti_ActivityMemcpy6;
using PeerMemcpy = CUpti_ActivityMemcpyPtoP4;
using Memset = CUpti_ActivityMemset4;

std::uint32_t number_in(const char* variable, std::uint32_t otherwise) {
  const char* const text = std::getenv(variable);
  return text ? static_cast<std::uint32_t>(std::atoi(text)) : otherwise;
}

FakeCupti& fake() {
  static FakeCupti fake{
      .version = number_in("GRADRING_FAKE_CUPTI_VERSION", CUPTI_API_VERSION),
      .dropped = number_in("GRADRING_FAKE_CUPTI_DROPPED", 0),
      .activities = {{.name = "_ZN8gradring7kernels7on_cuda17first_fake_kernelIfEEvPKf", .begin = 0.1, .end = 0.3},
                     {.name = "second_fake_kernel", .begin = 0.3, .end = 0.5, .graph = 4},
                     {.kind = CUPTI_ACTIVITY_KIND_MEMCPY, .stream = 13, .begin = 0.2, .end = 0.4, .bytes = 1024},
                     {.kind = CUPTI_ACTIVITY_KIND_MEMSET, .stream = 13, .begin = 0.5, .end = 0.6, .bytes = 64}}};
  return fake;
}

CUpti_BuffersCallbackRequestFunc request = nullptr;
CUpti_BuffersCallbackCompleteFunc complete = nullptr;

std::int64_t host_now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::uint64_t time_of(std::int64_t host) { return static_cast<std::uint64_t>(host + fake().clock_ahead); }

std::size_t size_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(Kernel);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(Memcpy);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return sizeof(PeerMemcpy);
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(Memset);
    default: return 0;
  }
}

template <class Record>
void set_common(Record& record, const FakeActivity& activity) {
  const auto at = [](double fraction) {
    const auto since = static_cast<double>(fake().ended - fake().began) * fraction;
    return time_of(fake().began + static_cast<std::int64_t>(since) + fake().misplaced_by);
  };
  record.kind = activity.kind;
  record.start = fake().forgets_times ? 0 : at(activity.begin);
  record.end = fake().forgets_times ? 0 : at(activity.end);
  record.streamId = activity.stream;
  record.graphId = activity.graph;
}

/// All bits are set where nothing else is, so that members that are not read from their place are seen.
template <class Record>
Record blank() {
  Record record;
  std::memset(static_cast<void*>(&record), 0xff, sizeof record);
  record.deviceId = 0;
  return record;
}

template <class Record>
std::size_t put(std::uint8_t* to, const Record& record) {
  std::memcpy(to, &record, sizeof record);
  return sizeof record;
}

template <class Record>
std::size_t write_copy(std::uint8_t* to, const FakeActivity& activity, std::uint8_t kind) {
  Record record = blank<Record>();
  set_common(record, activity);
  record.copyKind = kind;
  record.bytes = activity.bytes;
  return put(to, record);
}

/// Returns   the bytes written; 0 for what is no record.
std::size_t write(std::uint8_t* to, const FakeActivity& activity) {
  switch (activity.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      Kernel record = blank<Kernel>();
      set_common(record, activity);
      record.name = activity.name;
      record.gridX = 2, record.gridY = 3, record.gridZ = 4;
      record.blockX = 32, record.blockY = 8, record.blockZ = 1;
      record.registersPerThread = 40;
      return put(to, record);
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: return write_copy<Memcpy>(to, activity, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return write_copy<PeerMemcpy>(to, activity, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      Memset record = blank<Memset>();
      set_common(record, activity);
      record.bytes = activity.bytes;
      return put(to, record);
    }
    default: return put(to, activity.kind);  // for a reader to stumble over
  }
}

void pass_end() {
  if (fake().ended != 0) return;
  fake().ended = host_now();
  fake().clock_ahead += fake().clock_jump;
}

void deliver(std::size_t first, std::size_t last, bool keeps) {
  std::uint8_t* buffer = nullptr;
  std::size_t bytes = 0, most = 0, used = 0;
  request(&buffer, &bytes, &most);
  if (!buffer) return;
  for (std::size_t i = first; i < last; ++i) used += write(buffer + used, fake().activities[i]);
  if (!keeps) complete(nullptr, 0, buffer, bytes, used);
}

}  // namespace

extern "C" {

FakeCupti* fake_cupti() { return &fake(); }

CUptiResult cuptiGetVersion(std::uint32_t* version) {
  *version = fake().version;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
  *text = "an error of the fake CUPTI";
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(std::uint64_t* time) {
  *time = time_of(host_now());
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc of_request,
                                           CUpti_BuffersCallbackCompleteFunc of_complete) {
  request = of_request;
  complete = of_complete;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (kind == CUPTI_ACTIVITY_KIND_MEMSET && fake().enable_memset != CUPTI_SUCCESS) return fake().enable_memset;
  if (fake().enabled.empty()) {
    fake().began = host_now();
    ++fake().recordings;
  }
  fake().enabled.insert(kind);
  fake().ended = 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  pass_end();
  fake().enabled.erase(kind);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  if (!request || !complete) return CUPTI_ERROR_INVALID_OPERATION;
  pass_end();
  const bool executed = std::exchange(fake().recordings, 0) > 0 && ++fake().flushes % 2 == 0;
  const std::size_t all = executed ? fake().activities.size() : 0;
  for (std::size_t i = 0; i < all; i += fake().records_of_buffer)
    deliver(i, std::min(all, i + fake().records_of_buffer), i == 0 && fake().keeps_first_buffer);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t bytes, CUpti_Activity** record) {
  std::uint8_t* next = buffer;
  if (*record) next = reinterpret_cast<std::uint8_t*>(*record) + size_of((*record)->kind);
  if (next >= buffer + bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  if (size_of(reinterpret_cast<CUpti_Activity*>(next)->kind) == 0) return CUPTI_ERROR_INVALID_KIND;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  *dropped = std::exchange(fake().dropped, 0);
  return CUPTI_SUCCESS;
}
}
