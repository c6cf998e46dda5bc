// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/shared_memory/memfd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "kernels/base/error.h"

namespace gradring::comm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class MemfdRanges : public ::testing::Test {
 protected:
  /// Allocates pages and writes to them; they must be 0 before.
  Memfd::Mapping allocate(std::size_t pages) {
    const std::size_t bytes = pages * page_;
    offset_ = file_.allocate(bytes);
    Memfd::Mapping memory = file_.map_and_release(offset_, bytes);
    EXPECT_TRUE(std::all_of(memory.get(), memory.get() + bytes, [](std::byte byte) { return byte == std::byte{0}; }));
    std::fill_n(memory.get(), bytes, std::byte{0x5a});
    return memory;
  }
  /// In pages.
  std::size_t offset() const { return offset_ / page_; }
  std::size_t size() const { return file_.size() / page_; }

 private:
  const std::size_t page_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  Memfd file_ = Memfd::create();
  std::size_t offset_ = 0;
};

TEST_F(MemfdRanges, GrowsByWhatDoesNotFitInReleasedRanges) {
  auto a = allocate(2), b = allocate(3), c = allocate(1);
  EXPECT_EQ(size(), 6u);
  b.reset();
  const auto d = allocate(2);
  EXPECT_EQ(offset(), 2u);
  const auto e = allocate(2);
  EXPECT_EQ(offset(), 6u) << "one page is left there";
  const auto f = allocate(1);
  EXPECT_EQ(offset(), 4u);
  EXPECT_EQ(size(), 8u);
}

TEST_F(MemfdRanges, JoinsReleasedRanges) {
  for (const auto& order : std::vector<std::vector<std::size_t>>{{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}}) {
    std::vector<Memfd::Mapping> parts;
    for (int part = 0; part < 3; ++part) parts.push_back(allocate(2));
    const auto last = allocate(1);
    for (const std::size_t part : order) parts[part].reset();
    const auto whole = allocate(6);
    EXPECT_EQ(offset(), 0u);
    EXPECT_EQ(size(), 7u);
  }
}

TEST_F(MemfdRanges, StaysAsLargeAsWhatWasInUseAtOnce) {
  auto one = allocate(4), other = allocate(4);
  for (int round = 0; round < 100; ++round) {
    one.reset();
    one = allocate(4);
    other.reset();
    other = allocate(3);
  }
  EXPECT_EQ(size(), 8u);
}

/// The limit of file sizes keeps a defect from taking the memory of the machine.
TEST(Memfd, RejectsMoreMemoryThanIsAvailable) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1 << 20;
  auto* const handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  try {
    Memfd::create().allocate(std::size_t{1} << 50);
  } catch (const DeviceError& error) {
    message = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, AllOf(HasSubstr("shared memory of 1073741824 MiB of memory, but"),
                             HasSubstr("MiB are available"), HasSubstr("fewer ranks")));
}

}  // namespace
}  // namespace gradring::comm
