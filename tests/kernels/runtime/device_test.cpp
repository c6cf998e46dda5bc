// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "kernels/runtime/error.h"
#include "kernels/runtime/host/host_device.h"
#include "kernels/simt/engine/sanitizer.h"
#include "tests/kernels/runtime/each_device.h"

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

class Memory : public EachDevice {};
GRADRING_ON_EACH_DEVICE(Memory);

TEST_P(Memory, IsAlignedAndHoldsWhatIsWritten) {
  const auto stream = make_stream();
  for (const std::size_t bytes : {1, 63, 64, 65, 1 << 20}) {
    const Buffer on_device = device_->allocate(bytes, MemoryKind::device);
    const Buffer pinned = device_->allocate(bytes, MemoryKind::pinned);
    for (const Buffer* buffer : {&on_device, &pinned}) {
      ASSERT_EQ(buffer->size(), bytes);
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 64, 0u);
    }
    std::memset(pinned.data(), 1, bytes);
    stream->enqueue_copy(on_device.data(), pinned.data(), bytes);
    stream->enqueue_zero(pinned.data(), bytes);
    stream->enqueue_copy(pinned.data(), on_device.data(), bytes);
    stream->synchronize(Deadline::after(std::chrono::seconds(30)));
    EXPECT_EQ(pinned.as<std::uint8_t>()[0], 1);
    EXPECT_EQ(pinned.as<std::uint8_t>()[bytes - 1], 1);
  }
}

TEST_P(Memory, MayBeEmpty) {
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned})
    EXPECT_EQ(device_->allocate(0, kind).data(), nullptr);
  EXPECT_EQ(Buffer().size(), 0u);
}

TEST_P(Memory, SaysHowMuchWasAskedFor) {
  if (simt::detail::kAddressSanitizer || simt::detail::kThreadSanitizer)
    GTEST_SKIP() << "sanitizers end the process where an allocation fails";
  const std::size_t too_much = std::size_t{1} << 60;
  try {
    const Buffer buffer = device_->allocate(too_much, MemoryKind::device);
    FAIL() << "a machine with an exabyte";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(std::to_string(too_much)));
  }
  EXPECT_EQ(device_->allocate(64, MemoryKind::device).size(), 64u) << "a device is not the worse for it";
}

TEST_P(Memory, IsThereForSeveralThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (std::size_t bytes = 1; bytes < 2000; bytes *= 2)
        EXPECT_EQ(device_->allocate(bytes, MemoryKind::device).size(), bytes);
    });
  for (std::thread& thread : threads) thread.join();
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

}  // namespace
}  // namespace gradring::kernels
