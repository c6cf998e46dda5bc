// SPDX-License-Identifier: Apache-2.0
#include "data/loader/loader.h"

#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <latch>
#include <numeric>

#include "data/datasets/dataset.h"
#include "kernels/base/error.h"
#include "kernels/host/host_device.h"
#include "tests/data/support/message_of.h"

namespace gradring::data {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Deadline soon() { return Deadline::after(30s); }

std::vector<std::int64_t> first(std::int64_t count) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  return indices;
}

/// 100 samples of 2 x 3 pixels; all pixels of sample i are i, its label is i % 10.
class Numbers : public Dataset {
 public:
  Numbers() {
    for (std::size_t i = 0; i < pixels_.size(); ++i) pixels_[i].fill(static_cast<std::uint8_t>(i));
  }
  std::string_view name() const override { return "numbers"; }
  std::int64_t size() const override { return 100; }
  kernels::Shape shape() const override { return {2, 3, 1}; }
  int classes() const override { return 10; }
  std::span<const std::string> class_names() const override { return names_; }
  std::span<const std::uint8_t> pixels(std::int64_t index) const override {
    return pixels_.at(static_cast<std::size_t>(index));
  }
  int label(std::int64_t index) const override { return static_cast<int>(index % 10); }

 private:
  std::vector<std::string> names_ = numbered_classes(10);
  std::array<std::array<std::uint8_t, 6>, 100> pixels_{};
};

/// Gives sample 7 only after the gate is open.
class GatedNumbers final : public Numbers {
 public:
  int label(std::int64_t index) const override {
    if (index == 7) gate.wait();
    return Numbers::label(index);
  }
  mutable std::latch gate{1};
};

/// Cannot give sample 7.
class BrokenNumbers final : public Numbers {
 public:
  int label(std::int64_t index) const override {
    check(index != 7, "sample 7 is broken");
    return Numbers::label(index);
  }
};

/// Counts the samples that were asked for.
class CountedNumbers final : public Numbers {
 public:
  int label(std::int64_t index) const override {
    ++asked;
    return Numbers::label(index);
  }
  mutable std::atomic<int> asked{0};
};

class LoaderTest : public ::testing::Test {
 protected:
  kernels::HostDevice device_;
  Numbers numbers_;
};

TEST_F(LoaderTest, KeepsTheOrderAndTheShortLastBatch) {
  const std::vector<std::int64_t> indices = {42, 7, 99, 0, 7, 13, 58};
  for (int depth : {1, 2, 4, 9})
    for (std::int64_t batch_size : {1, 2, 3, 7, 100}) {
      Loader loader(numbers_, device_,
                    {.indices = indices, .batch_size = batch_size, .threads = 1 + depth % 3, .depth = depth});
      std::int64_t position = 0, steps = 0;
      while (const auto batch = loader.next(soon())) {
        EXPECT_EQ(batch->position(), position);
        EXPECT_EQ(batch->shape(), kernels::Shape({std::min(batch_size, 7 - position), 2, 3, 1}));
        for (std::int64_t i = 0; i < batch->count(); ++i, ++position) {
          const std::int64_t index = indices[static_cast<std::size_t>(position)];
          EXPECT_EQ(batch->labels()[static_cast<std::size_t>(i)], index % 10);
          for (float value : batch->images().subspan(static_cast<std::size_t>(i) * 6, 6))
            EXPECT_EQ(value, (static_cast<float>(index) / 255.0f - 0.5f) / 0.5f);
        }
        ++steps;
      }
      EXPECT_EQ(position, 7);
      EXPECT_EQ(steps, loader.geometry().steps());
      EXPECT_FALSE(loader.next(soon())) << "the end stays the end";
    }
}

TEST_F(LoaderTest, KnowsItsStepsBeforehand) {
  EXPECT_EQ((BatchGeometry{.samples = 0, .batch_size = 4}.steps()), 0);
  EXPECT_EQ((BatchGeometry{.samples = 8, .batch_size = 4}.steps()), 2);
  EXPECT_EQ((BatchGeometry{.samples = 9, .batch_size = 4}.steps()), 3);
  EXPECT_EQ((BatchGeometry{.samples = 9, .batch_size = 4}.begin(2)), 8);
  EXPECT_EQ((BatchGeometry{.samples = 9, .batch_size = 4}.end(2)), 9);
  const BatchGeometry windows{.samples = 25, .batch_size = 4, .window = 10};  // 4, 4, 2, twice; 4, 1
  ASSERT_EQ(windows.steps(), 8);
  std::vector<std::int64_t> begins;
  for (std::int64_t step = 0; step <= windows.steps(); ++step) begins.push_back(windows.begin(step));
  EXPECT_EQ(begins, (std::vector<std::int64_t>{0, 4, 8, 10, 14, 18, 20, 24, 25}));
  EXPECT_EQ((BatchGeometry{.samples = 3, .batch_size = 4, .window = 2}.steps()), 2);
}

TEST_F(LoaderTest, EndsAtOnceWithoutSamples) {
  Loader loader(numbers_, device_, {.indices = {}});
  EXPECT_FALSE(loader.next(soon()));
}

TEST_F(LoaderTest, LeavesALentBatchAlone) {
  Loader loader(numbers_, device_, {.indices = first(100), .batch_size = 5, .depth = 2});
  const auto held = loader.next(soon());
  std::int64_t others = 0;
  while (loader.next(soon())) ++others;
  EXPECT_EQ(others, 19);
  EXPECT_THAT(held->labels(), ElementsAre(0, 1, 2, 3, 4));
}

TEST_F(LoaderTest, RejectsLoansOfMoreThanItHas) {
  Loader loader(numbers_, device_, {.indices = first(100), .batch_size = 5, .depth = 2});
  auto a = loader.next(soon());
  const auto b = loader.next(soon());
  EXPECT_THAT(tests::message_of<InvalidArgument>([&] { loader.next(soon()); }), HasSubstr("all 2 batches"));
  a.reset();
  EXPECT_EQ(loader.next(soon())->position(), 10);
}

TEST_F(LoaderTest, HandsAnErrorOverWhereTheBatchWouldHaveCome) {
  const BrokenNumbers broken;
  Loader loader(broken, device_, {.indices = first(20), .batch_size = 3});
  EXPECT_EQ(loader.next(soon())->position(), 0);
  EXPECT_EQ(loader.next(soon())->position(), 3);
  for (int again = 0; again < 2; ++again)
    EXPECT_THAT(tests::message_of<InvalidArgument>([&] { loader.next(soon()); }), HasSubstr("sample 7 is broken"));
}

TEST_F(LoaderTest, HandsOverAnIndexOutsideTheSet) {
  Loader loader(numbers_, device_, {.indices = {0, 100}, .batch_size = 1});
  EXPECT_TRUE(loader.next(soon()));
  EXPECT_THROW(loader.next(soon()), std::exception);
}

TEST_F(LoaderTest, GivesUpAtTheDeadlineAndGoesOnLater) {
  const GatedNumbers gated;
  Loader loader(gated, device_, {.indices = {7, 8}, .batch_size = 2});
  EXPECT_THAT(tests::message_of<Error>([&] { loader.next(Deadline::after(1ms)); }), HasSubstr("before the deadline"));
  gated.gate.count_down();
  EXPECT_THAT(loader.next(soon())->labels(), ElementsAre(7, 8));
}

TEST_F(LoaderTest, ReportsHowLongTheCallerWaited) {
  Loader loader(numbers_, device_, {.indices = first(4), .batch_size = 4});
  const auto before = Deadline::Clock::now();
  const auto batch = loader.next(soon());
  const auto elapsed = Deadline::Clock::now() - before;
  EXPECT_GE(batch->data_wait(), 0ns);
  EXPECT_LE(batch->data_wait(), elapsed);
}

TEST_F(LoaderTest, FillsNoMoreThanItsDepth) {
  const CountedNumbers counted;
  {
    Loader loader(counted, device_, {.indices = first(100), .batch_size = 1, .depth = 3});
    const auto held = loader.next(soon());
  }
  EXPECT_LE(counted.asked, 4);  // three slots; the lent one may have been filled anew before the end
}

TEST_F(LoaderTest, StopsWhenItIsDestroyed) {
  for (int batches = 0; batches < 5; ++batches) {
    Loader loader(numbers_, device_, {.indices = first(100), .batch_size = 2, .depth = 2});
    for (int i = 0; i < batches; ++i) EXPECT_TRUE(loader.next(soon()));
  }
}

TEST_F(LoaderTest, RejectsWhatCannotBe) {
  EXPECT_THROW(Loader(numbers_, device_, {.indices = {0}, .batch_size = 0}), InvalidArgument);
  EXPECT_THROW(Loader(numbers_, device_, {.indices = {0}, .depth = 0}), InvalidArgument);
  EXPECT_THROW(Loader(numbers_, device_, {.indices = {0}, .normalize = {.mean = {0, 0}, .std = {1, 1}}}),
               InvalidArgument);
}

TEST_F(LoaderTest, TracesTheBatchesThatItsThreadPrepares) {
  std::atomic<bool> recording{false};
  kernels::TraceTrack track("loader", 10, recording);
  for (const bool on : {false, true}) {
    recording = on;
    const std::int64_t before = kernels::TraceTrack::now();
    Loader loader(numbers_, device_, {.indices = first(10), .batch_size = 4, .depth = 3, .trace = &track});
    std::vector<std::int64_t> counts;
    while (const auto batch = loader.next(soon())) {
      counts.push_back(batch->count());
      ASSERT_EQ(track.events().size() >= counts.size(), on) << "the event of a batch is there before the batch";
    }
    EXPECT_THAT(counts, ElementsAre(4, 4, 2));
    std::int64_t end = before;
    for (std::size_t i = 0; i < track.events().size(); ++i) {
      const kernels::TraceEvent& event = track.events()[i];
      EXPECT_STREQ(event.name, "prepare batch");
      EXPECT_EQ(event.numbers[0], counts.at(i));
      EXPECT_GE(event.begin, end) << "one after the other";
      EXPECT_GE(end = event.end, event.begin);
    }
  }
  EXPECT_EQ(track.events().size(), 3u);
}

}  // namespace
}  // namespace gradring::data
