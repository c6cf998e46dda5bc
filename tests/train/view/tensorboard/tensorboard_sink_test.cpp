// SPDX-License-Identifier: Apache-2.0
// What TensorBoard itself does not judge; what it does is in tests/train/app/commands/tensorboard_test.cpp.
#include "train/view/tensorboard/tensorboard_sink.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "tests/support/temp_folder.h"
#include "tests/train/support/file_size_limit.h"
#include "tests/train/support/text_of.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train::tensorboard {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Record, HasTheChecksumOfItsSource) {  // RFC 3720, appendix B.4
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(record_of("abc").size(), 8u + 4 + 3 + 4);
}

TEST(HistogramOf, CountsFiniteValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Histogram histogram = histogram_of(std::vector<float>{0, 64, std::nanf(""), 1, infinity, 63.5, -infinity});
  EXPECT_EQ(histogram.count, 4);
  EXPECT_EQ(histogram.sum, 128.5);
  EXPECT_EQ(histogram.sum_of_squares, 64 * 64 + 1 + 63.5 * 63.5);
  ASSERT_EQ(histogram.counts.size(), std::size_t{kHistogramBuckets});
  EXPECT_EQ(histogram.counts[0], 1);
  EXPECT_EQ(histogram.counts[1], 1);
  EXPECT_EQ(histogram.counts[63], 2) << "the greatest value is in the last bucket";
  EXPECT_EQ(histogram.limits[0], 1);
  EXPECT_EQ(histogram.limits[63], 64);
}

TEST(HistogramOf, OfEqualValuesHasOneBucket) {
  const Histogram histogram = histogram_of(std::vector<float>{-2, -2, -2});
  EXPECT_THAT(histogram.counts, ElementsAre(3));
  EXPECT_THAT(histogram.limits, ElementsAre(-2));
  EXPECT_EQ(histogram_of({}).count, 0);
}

TEST(Pictures, ShowFiltersOfOneOrThreeChannels) {
  EXPECT_TRUE(has_visible_filters({.shape = {32, 1, 3, 3}}));
  EXPECT_TRUE(has_visible_filters({.shape = {32, 3, 3, 3}}));
  EXPECT_FALSE(has_visible_filters({.shape = {64, 32, 3, 3}}));
  EXPECT_FALSE(has_visible_filters({.shape = {10, 3}}));
  const Tiles tiles = filters_of({.shape = {1, 3, 1, 2}, .values = {-2, 0, 1, 2, std::nanf(""), 0.5}});
  ASSERT_EQ(tiles.images.size(), 1u);
  EXPECT_THAT(tiles.images[0], ElementsAre(0, 191, 128, 128, 255, 159)) << "channels innermost";
}

class EventFile : public ::testing::Test {
 protected:
  EventFile() { fs::create_directory(folder_.parent_path()); }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }

  tests::TempFolder place_;
  fs::path folder_ = place_.path() / "run" / "tensorboard";
};

TEST_F(EventFile, IsTheLastOfItsFolder) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "events.out.tfevents.9999999990.host");  // of a clock that was wrong
  std::ofstream(folder_ / "zzz");
  EXPECT_THAT(new_event_file(folder_).path().filename().string(),
              ::testing::StartsWith("events.out.tfevents.9999999991."));
  const TensorBoardSink first(folder_, {}), second(folder_, {});
  EXPECT_EQ(names().size(), 4u) << "each start has a file of its own";
}

TEST_F(EventFile, HoldsWholeRecordsOnAFullDisk) {
  TensorBoardSink sink(folder_, {});
  const fs::path path = folder_ / names().at(0);
  const auto size_of_step = [&] {
    const auto before = fs::file_size(path);
    sink.event(StepRecord{.step = 1, .loss = 2});
    return fs::file_size(path) - before;
  };
  const auto step = size_of_step();
  {
    const auto before = fs::file_size(path);
    const tests::FileSizeLimit disk(before + step + 10);
    EXPECT_EQ(size_of_step(), step);
    EXPECT_EQ(size_of_step(), 0u) << "no part of a record";
    EXPECT_THROW(sink.finish(), EnvironmentError);
  }
  EXPECT_EQ(size_of_step(), 2 * step) << "what waited is written, too";
  sink.finish();
}

TEST_F(EventFile, IsFollowedByAnotherIfItIsRemoved) {
  TensorBoardSink sink(folder_, {});
  const std::string first = names().at(0);
  fs::remove(folder_ / first);
  sink.event(StepRecord{.step = 1, .loss = 2});
  sink.finish();
  ASSERT_EQ(names().size(), 1u);
  EXPECT_GT(fs::file_size(folder_ / names()[0]), 100u) << "a version and a step";
}

TEST_F(EventFile, HasTheCommandThatStartedTheRun) {
  TensorBoardSink sink(folder_, {});
  sink.event(RunHeader{.command = {"gradring", "train", "--nprocs", "2", "--nprocs", "1"},
                       .start = "gradring launch --nproc-per-node 2 train --name 'a b'",
                       .config = {{"inject", "a|b"}}});
  const std::string text = tests::text_of(folder_ / names().at(0));
  EXPECT_THAT(text, HasSubstr("`gradring launch --nproc-per-node 2 train --name 'a b'`"));
  EXPECT_THAT(text, HasSubstr("| inject | `a\\|b` |"));
}

TEST_F(EventFile, NeedsAFolder) {
  fs::create_directories(folder_.parent_path());
  std::ofstream(folder_) << "a file";
  EXPECT_THROW(TensorBoardSink(folder_, {}), EnvironmentError);
}

}  // namespace
}  // namespace gradring::train::tensorboard
