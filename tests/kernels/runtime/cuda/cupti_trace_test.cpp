// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/cupti_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "kernels/base/error.h"
#include "kernels/base/shared_library.h"
#include "kernels/runtime/cuda/cuda_device.h"
#include "kernels/runtime/cuda/cupti_api.h"
#include "tests/support/built_file.h"
#include "tests/support/fake_cupti/fake_cupti.h"

namespace gradring::kernels {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using tests::FakeActivity;
using tests::FakeCupti;

/// How far apart the clocks may be read on a busy machine, ns.
constexpr double kMillisecond = 1e6;

class CuptiTraceTest : public ::testing::Test {
 protected:
  CuptiTraceTest() {
    FakeCupti* (*entry)() = nullptr;
    SharedLibrary(file_, {}).find(tests::kFakeCupti, entry);
    fake_ = entry();
    *fake_ = FakeCupti{.version = CUPTI_API_VERSION, .activities = {{.name = "k", .begin = 0.25, .end = 0.5}}};
  }
  DeviceActivities traced() {
    const auto trace = make_cupti_trace(file_);
    trace->start();
    EXPECT_THAT(fake_->enabled, SizeIs(4));
    DeviceActivities found = trace->stop();
    EXPECT_THAT(fake_->enabled, IsEmpty());
    return found;
  }
  /// The time of the host at a fraction of the trace.
  double host(double fraction) const {
    return static_cast<double>(fake_->began) + fraction * static_cast<double>(fake_->ended - fake_->began);
  }

  const std::string file_ = tests::built_file(GRADRING_FAKE_CUPTI);
  FakeCupti* fake_ = nullptr;
};

TEST_F(CuptiTraceTest, DecodesTheRecordsOfCupti13) {
  fake_->activities = {
      {.name = "_ZN8gradring11some_kernelIfEEvPKf", .begin = 0.1, .end = 0.2, .graph = 3},
      {.kind = CUPTI_ACTIVITY_KIND_MEMCPY, .begin = 0.3, .end = 0.4, .bytes = 4096, .graph = 4},
      {.kind = CUPTI_ACTIVITY_KIND_MEMCPY2, .begin = 0.5, .end = 0.6, .bytes = 5000, .graph = 5},
      {.kind = CUPTI_ACTIVITY_KIND_MEMSET, .begin = 0.7, .end = 0.8, .bytes = 6000, .graph = 6},
  };
  const DeviceActivities found = traced();
  EXPECT_THAT(found.notes, IsEmpty());
  ASSERT_EQ(found.tracks.size(), 1u);
  EXPECT_EQ(found.tracks[0].name, "GPU 0 stream 7");
  const auto& events = found.tracks[0].events;
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].category, TraceCategory::kernel);
  EXPECT_STREQ(events[0].name, "void gradring::some_kernel<float>(float const*)");
  EXPECT_THAT(events[0].numbers, ElementsAre(2 * 3 * 4, 32 * 8, 40, 3));
  EXPECT_EQ(events[1].category, TraceCategory::memcpy);
  EXPECT_STREQ(events[1].name, "memcpy host to device");
  EXPECT_THAT(events[1].numbers, ElementsAre(4096, 4, 0, 0));
  EXPECT_STREQ(events[2].name, "memcpy between devices");
  EXPECT_THAT(events[2].numbers, ElementsAre(5000, 5, 0, 0));
  EXPECT_EQ(events[3].category, TraceCategory::memset);
  EXPECT_THAT(events[3].numbers, ElementsAre(6000, 6, 0, 0));
  for (std::size_t i = 0; i < events.size(); ++i) {
    const double fraction = 0.1 + 0.2 * static_cast<double>(i);
    EXPECT_NEAR(static_cast<double>(events[i].begin), host(fraction), kMillisecond);
    EXPECT_NEAR(static_cast<double>(events[i].end), host(fraction + 0.1), kMillisecond);
  }
}

TEST_F(CuptiTraceTest, ReadsSeveralBuffersAndSeveralTraces) {
  fake_->activities = {{.name = "a", .begin = 0.1, .end = 0.2}, {.name = "b", .begin = 0.2, .end = 0.3}};
  fake_->records_of_buffer = 1;
  for (int i = 0; i < 2; ++i) EXPECT_THAT(traced().tracks.at(0).events, SizeIs(2)) << i;
}

TEST_F(CuptiTraceTest, NotesDroppedRecords) {
  fake_->dropped = 7;
  EXPECT_THAT(traced().notes, ElementsAre(HasSubstr("7 GPU activities were dropped")));
}

TEST_F(CuptiTraceTest, NotesABufferThatDoesNotComeBack) {
  fake_->activities.push_back({.name = "second", .begin = 0.5, .end = 0.6});
  fake_->records_of_buffer = 1;
  fake_->keeps_first_buffer = true;
  const DeviceActivities found = traced();
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("1 buffer of GPU activities did not come back")));
  EXPECT_THAT(found.tracks.at(0).events, SizeIs(1));
}

TEST_F(CuptiTraceTest, NotesABufferThatCannotBeReadToTheEnd) {
  fake_->activities.insert(fake_->activities.begin(), {.kind = CUPTI_ACTIVITY_KIND_PC_SAMPLING});
  EXPECT_THAT(traced().notes, Contains(HasSubstr("1 buffer of GPU activities could not be read")));
}

TEST_F(CuptiTraceTest, NotesAWrongClock) {
  fake_->misplaced_by = 3'600'000'000'000;
  EXPECT_THAT(traced().notes, ElementsAre(HasSubstr("outside of the recorded steps")));
  fake_->misplaced_by = 0;
  fake_->forgets_times = true;
  EXPECT_THAT(traced().notes, ElementsAre(HasSubstr("does not know their times")));
}

/// The planted mistake of a reader that takes the device's times for the host's.
TEST_F(CuptiTraceTest, FindsTheClockOfTheLibrary) {
  for (const std::int64_t ahead : {-1'000'000'000ll, 0ll, 1'700'000'000'000'000'000ll}) {
    fake_->clock_ahead = ahead;
    const DeviceActivities found = traced();
    EXPECT_THAT(found.notes, IsEmpty()) << ahead;
    EXPECT_NEAR(static_cast<double>(found.tracks.at(0).events[0].begin), host(0.25), kMillisecond) << ahead;
  }
}

TEST_F(CuptiTraceTest, EndsWhatItBeganIfAKindCannotBeRecorded) {
  fake_->enable_memset = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  EXPECT_THROW(make_cupti_trace(file_), DeviceError) << "before a CUDA graph is captured";
  EXPECT_THAT(fake_->enabled, IsEmpty());
}

TEST_F(CuptiTraceTest, RejectsAnOlderLibraryAndAMissingOne) {
  fake_->version = 18;
  const auto error_of = [](const std::string& file) -> std::string {
    try {
      make_cupti_trace(file);
    } catch (const DeviceError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(error_of(file_), AllOf(HasSubstr("has version 18 of CUPTI"), HasSubstr("CUDA 12.0")));
  EXPECT_THAT(error_of("libcupti_of_nobody.so"), HasSubstr("libcupti_of_nobody.so"));
}

class RealCupti : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      api_ = CuptiApi::load();
    } catch (const DeviceError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  CuptiApi api_;
};

/// CUPTI's reference: CLOCK_REALTIME on Linux. That is not the clock of traces.
TEST_F(RealCupti, HasAClockOfItsOwn) {
  const auto realtime = [] {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
  };
  const std::uint64_t before = realtime();
  std::uint64_t time = 0;
  cupti_check(api_, api_.get_timestamp(&time), "cuptiGetTimestamp");
  EXPECT_GE(time, before);
  EXPECT_LE(time, realtime());
}

TEST_F(RealCupti, RecordsNothingWhereNothingRunsAndSaysWhyWithoutAGpu) {
  if (cuda_device_count() == 0) {
    std::string why;
    try {
      make_cupti_trace();
    } catch (const DeviceError& error) {
      why = error.what();
    }
    EXPECT_THAT(why, HasSubstr("cuptiActivityEnable failed: "));
    return;
  }
  const auto trace = make_cupti_trace();
  for (int i = 0; i < 2; ++i) {
    trace->start();
    const DeviceActivities found = trace->stop();
    EXPECT_THAT(found.tracks, IsEmpty());
    EXPECT_THAT(found.notes, IsEmpty());
  }
}

}  // namespace
}  // namespace gradring::kernels
