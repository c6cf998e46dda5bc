// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "kernels/runtime/error.h"
#include "kernels/runtime/host/host_device.h"
#include "kernels/simt/engine/sanitizer.h"

namespace gradring::kernels {
namespace {

TEST(DeviceId, ParsesWhatItPrints) {
  for (const DeviceId id :
       {DeviceId{DeviceKind::cpu, 0}, DeviceId{DeviceKind::cuda, 0}, DeviceId{DeviceKind::cuda, 12}})
    EXPECT_EQ(DeviceId::parse(id.to_string()), id);
  EXPECT_EQ(DeviceId::parse("cuda"), (DeviceId{DeviceKind::cuda, 0}));
}

TEST(DeviceId, RefusesOtherSpellings) {
  for (const char* wrong : {"", "gpu", "CPU", "cpu:0", "cuda:", "cuda:-1", "cuda:x", "cuda:1x", "cuda:99999999999"})
    EXPECT_THROW(DeviceId::parse(wrong), InvalidArgument) << wrong;
}

TEST(HostDevice, SaysWhatItIs) {
  HostDevice device;
  EXPECT_EQ(device.id().to_string(), "cpu");
  EXPECT_THAT(device.description(), testing::HasSubstr("threads"));
}

TEST(Buffer, OwnsAlignedMemory) {
  HostDevice device;
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned})
    for (const std::size_t bytes : {1, 63, 64, 65, 1 << 20}) {
      const Buffer buffer = device.allocate(bytes, kind);
      ASSERT_EQ(buffer.size(), bytes);
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
      std::memset(buffer.data(), 1, bytes);
      EXPECT_EQ(buffer.as<std::uint8_t>()[bytes - 1], 1);
    }
}

TEST(Buffer, MayBeEmpty) {
  HostDevice device;
  EXPECT_EQ(device.allocate(0, MemoryKind::device).data(), nullptr);
  EXPECT_EQ(Buffer().size(), 0u);
}

TEST(Buffer, MovesAndReleasesOnce) {
  struct Counter final : Buffer::Resource {
    std::vector<std::size_t> released;
    void release(void*, std::size_t bytes) noexcept override { released.push_back(bytes); }
  } counter;
  int memory = 0;
  {
    Buffer first(&memory, 4, counter);
    const Buffer second = std::move(first);
    EXPECT_EQ(second.as<int>(), &memory);
    EXPECT_THAT(counter.released, testing::IsEmpty());
  }
  EXPECT_THAT(counter.released, testing::ElementsAre(4));
}

TEST(Buffer, SaysHowMuchWasAskedFor) {
  if (simt::detail::kAddressSanitizer || simt::detail::kThreadSanitizer)
    GTEST_SKIP() << "sanitizers end the process where an allocation fails";
  HostDevice device;
  const std::size_t too_much = std::size_t{1} << 60;
  try {
    const Buffer buffer = device.allocate(too_much, MemoryKind::device);
    FAIL() << "a machine with an exabyte";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(std::to_string(too_much)));
  }
}

}  // namespace
}  // namespace gradring::kernels
