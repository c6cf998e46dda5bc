// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <fstream>

#include "tests/support/json.h"
#include "tests/train/launch/running_launcher.h"
#include "train/launch/workers/worker_files.h"
#include "train/options/error_report.h"

namespace gradring::train {
namespace {

class ErrorFile : public ::testing::Test {
 protected:
  std::string path() const { return folder_.path() / "error.json"; }
  std::optional<ErrorReport> read(const std::string& content) const {
    std::ofstream(path()) << content;
    return read_error_file(path());
  }

  TestFolder folder_;
};

TEST_F(ErrorFile, HasTorchrunsFormat) {
  ASSERT_TRUE(write_error_file(path(), "no \"such\" file\nat all"));
  const auto content = tests::parse_json(folder_.text("error.json"));
  EXPECT_EQ(content["message"]["message"], "no \"such\" file\nat all");
  EXPECT_EQ(content["message"]["extraInfo"]["py_callstack"], content["message"]["message"]);
  EXPECT_GT(std::stoll(content["message"]["extraInfo"]["timestamp"].get<std::string>()), 1'600'000'000);
}

TEST_F(ErrorFile, RoundTrips) {
  ASSERT_TRUE(write_error_file(path(), "bytes that are no UTF-8: \xff"));
  const auto report = read_error_file(path());
  ASSERT_TRUE(report);
  EXPECT_THAT(report->message, testing::StartsWith("bytes that are no UTF-8: "));
  EXPECT_GT(report->timestamp, 1'600'000'000);
}

TEST_F(ErrorFile, IsNotWrittenWithoutAPath) {
  EXPECT_FALSE(write_error_file("", "lost"));
  EXPECT_FALSE(write_error_file("/no/such/folder/error.json", "lost"));
}

TEST_F(ErrorFile, ReadsReportsOfTorch) {
  const auto report =
      read(R"({"message": {"message": "RuntimeError: x", "extraInfo": {"timestamp": 17, "py_callstack": "..."}}})");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->message, "RuntimeError: x");
  EXPECT_EQ(report->timestamp, 17);
  EXPECT_EQ(read(R"({"message": "plain", "timestamp": 5})")->message, "plain");
}

TEST_F(ErrorFile, IgnoresInvalidFiles) {
  EXPECT_FALSE(read_error_file(path()));
  for (const char* content : {"", "{", "[]", "3", "{}", R"({"message": 3})", R"({"message": {"message": null}})",
                              R"({"message": {"extraInfo": []}})"})
    EXPECT_FALSE(read(content)) << content;
  EXPECT_EQ(read(R"({"message": {"message": "m", "extraInfo": []}})")->timestamp, 0);
}

TEST_F(ErrorFile, IgnoresFilesThatAreNotRegular) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_FALSE(read_error_file(path()));  // opening it blocks until there is a writer
  EXPECT_FALSE(read_error_file(folder_.path()));
  EXPECT_FALSE(read_error_file("/dev/zero"));
}

TEST_F(ErrorFile, IgnoresHugeFiles) { EXPECT_FALSE(read("{\"message\": \"" + std::string(2 << 20, 'x') + "\"}")); }

TEST(ProgressFile, RoundTrips) {
  const TestFolder folder;
  const std::string path = folder.path() / "progress";
  EXPECT_FALSE(read_progress(path));
  for (const std::int64_t step : {std::int64_t(0), std::int64_t(7), std::int64_t(1) << 40}) {
    ASSERT_TRUE(write_progress(path, step));
    EXPECT_EQ(read_progress(path), step);
  }
}

TEST(ProgressFile, IsNotWrittenWithoutAPath) {
  EXPECT_FALSE(write_progress("", 1));
  EXPECT_FALSE(write_progress("/no/such/folder/progress", 1));
}

TEST(ProgressFile, AcceptsTextOfAShell) {
  const TestFolder folder;
  std::ofstream(folder.path() / "p") << "12\n";
  EXPECT_EQ(read_progress(folder.path() / "p"), 12);
  for (const char* text : {"", "x", "-1", "1x", "99999999999999999999"}) {
    std::ofstream(folder.path() / "p") << text << std::flush;
    EXPECT_FALSE(read_progress(folder.path() / "p")) << text;
  }
}

TEST(ProgressFile, IgnoresFilesThatAreNotRegular) {
  const TestFolder folder;
  const std::string path = folder.path() / "progress";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(read_progress(path));  // opening it blocks until there is a writer
  EXPECT_FALSE(read_progress("/dev/zero"));
}

}  // namespace
}  // namespace gradring::train
