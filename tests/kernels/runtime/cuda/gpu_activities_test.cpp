// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/gpu_activities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace gradring::kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kBoot = 1'700'000'000'000'000'000;  // by a clock that counts since 1970

/// A trace of one second, from 5 s on, with two clocks of equal speed.
const ClockPair kFirst = {.host = 5 * kSecond, .device = kBoot, .accuracy = 100};
const ClockPair kLast = {.host = 6 * kSecond, .device = kBoot + kSecond, .accuracy = 100};

GpuActivity kernel(std::uint32_t stream, std::uint64_t begin, std::uint64_t end) {
  return {.name = "k", .begin = kBoot + begin, .end = kBoot + end, .stream = stream};
}

std::vector<std::string> names_of(const DeviceActivities& found) {
  std::vector<std::string> names;
  for (const auto& track : found.tracks) names.push_back(track.name);
  return names;
}

TEST(GpuActivities, AreOnTheHostsClock) {
  const DeviceActivities found = to_tracks({.activities = {kernel(7, 1000, 2500)}}, kFirst, kLast);
  ASSERT_EQ(found.tracks.size(), 1u);
  EXPECT_EQ(found.tracks[0].events[0].begin, 5 * kSecond + 1000);
  EXPECT_EQ(found.tracks[0].events[0].end, 5 * kSecond + 2500);
  EXPECT_THAT(found.notes, IsEmpty());
}

/// 500 ppm, as much as NTP slows a clock down.
TEST(GpuActivities, FollowAClockOfAnotherSpeed) {
  ClockPair last = kLast;
  last.device -= kSecond / 2000;
  const DeviceActivities found = to_tracks({.activities = {kernel(7, kSecond / 2, kSecond / 2)}}, kFirst, last);
  EXPECT_NEAR(static_cast<double>(found.tracks.at(0).events[0].begin - 5 * kSecond), 0.5 / 0.9995 * kSecond, 1);
  EXPECT_THAT(found.notes, IsEmpty());
}

TEST(GpuActivities, NoteAClockThatJumps) {
  for (const std::int64_t jump : {kSecond / 100, -kSecond / 100, -2 * kSecond}) {
    ClockPair last = kLast;
    last.device += static_cast<std::uint64_t>(jump);
    EXPECT_THAT(to_tracks({}, kFirst, last).notes, ElementsAre(HasSubstr("CUPTI's clock went "))) << jump;
  }
  ClockPair inaccurate = kLast;
  inaccurate.device += kSecond / 100;
  inaccurate.accuracy = kSecond / 50;
  EXPECT_THAT(to_tracks({}, kFirst, inaccurate).notes, IsEmpty()) << "a difference that the readings explain";
}

TEST(GpuActivities, HaveATrackForEachStreamAndMoreWhereTheyOverlap) {
  GpuActivity other_device = kernel(7, 10, 20);
  other_device.device = 1;
  const GpuRecords records = {
      .activities = {kernel(9, 30, 40), kernel(7, 5, 9), other_device, kernel(7, 0, 5), kernel(9, 10, 35)}};
  const DeviceActivities found = to_tracks(records, kFirst, kLast);
  EXPECT_THAT(names_of(found), ElementsAre("GPU 0 stream 7", "GPU 0 stream 9", "GPU 0 stream 9 (2)", "GPU 1 stream 7"));
  ASSERT_EQ(found.tracks[0].events.size(), 2u) << "one begins when the other ends";
  EXPECT_EQ(found.tracks[0].events[0].end, found.tracks[0].events[1].begin);
}

TEST(GpuActivities, OfUnknownTimesOrOutsideOfTheTraceAreLeftOutAndNoted) {
  GpuActivity unknown = kernel(7, 0, 0);
  unknown.begin = unknown.end = 0;
  const GpuRecords records = {
      .activities = {unknown, kernel(7, 20, 10), kernel(7, 2 * kSecond, 3 * kSecond), kernel(7, 0, 1)}};
  const DeviceActivities found = to_tracks(records, kFirst, kLast);
  ASSERT_EQ(found.tracks.size(), 1u);
  EXPECT_EQ(found.tracks[0].events.size(), 1u);
  EXPECT_THAT(found.notes, ElementsAre("2 GPU activities were dropped: CUPTI does not know their times",
                                       "1 GPU activity was dropped: their times lie outside of the recorded steps"));
}

TEST(GpuActivities, NoteWhatWasLost) {
  const GpuRecords records = {.dropped = 7, .without_room = 1, .lost_buffers = 2, .unreadable_buffers = 1};
  EXPECT_THAT(to_tracks(records, kFirst, kLast).notes,
              ElementsAre("7 GPU activities were dropped: CUPTI had no room for them", HasSubstr("--trace-steps"),
                          HasSubstr("2 buffers of GPU activities did not come back"),
                          HasSubstr("1 buffer of GPU activities could not be read")));
}

}  // namespace
}  // namespace gradring::kernels
