// SPDX-License-Identifier: Apache-2.0
#include "train/launch/error_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/train/launch/running_launcher.h"

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

TEST_F(ErrorFile, HasTorchrunsShape) {
  ASSERT_TRUE(write_error_file(path(), "no \"such\" file\nat all"));
  const auto content = nlohmann::json::parse(folder_.text("error.json"));
  EXPECT_EQ(content["message"]["message"], "no \"such\" file\nat all");
  EXPECT_EQ(content["message"]["extraInfo"]["py_callstack"], content["message"]["message"]);
  EXPECT_GT(std::stoll(content["message"]["extraInfo"]["timestamp"].get<std::string>()), 1'600'000'000);
}

TEST_F(ErrorFile, IsReadBack) {
  ASSERT_TRUE(write_error_file(path(), "bytes that are no UTF-8: \xff"));
  const auto report = read_error_file(path());
  ASSERT_TRUE(report);
  EXPECT_THAT(report->message, testing::StartsWith("bytes that are no UTF-8: "));
  EXPECT_GT(report->timestamp, 1'600'000'000);
}

TEST_F(ErrorFile, IsNotWrittenWhereNobodyAsked) {
  EXPECT_FALSE(write_error_file("", "lost"));
  EXPECT_FALSE(write_error_file("/no/such/folder/error.json", "lost"));
}

TEST_F(ErrorFile, MayComeFromTorch) {
  const auto report =
      read(R"({"message": {"message": "RuntimeError: x", "extraInfo": {"timestamp": 17, "py_callstack": "..."}}})");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->message, "RuntimeError: x");
  EXPECT_EQ(report->timestamp, 17);
  EXPECT_EQ(read(R"({"message": "plain", "timestamp": 5})")->message, "plain");
}

TEST_F(ErrorFile, ThatIsBrokenIsNone) {
  EXPECT_FALSE(read_error_file(path()));
  for (const char* content : {"", "{", "[]", "3", "{}", R"({"message": 3})", R"({"message": {"message": null}})",
                              R"({"message": {"extraInfo": []}})"})
    EXPECT_FALSE(read(content)) << content;
  EXPECT_EQ(read(R"({"message": {"message": "m", "extraInfo": []}})")->timestamp, 0);
}

}  // namespace
}  // namespace gradring::train
