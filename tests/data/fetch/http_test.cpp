// SPDX-License-Identifier: Apache-2.0
#include "data/fetch/http.h"

#include <gmock/gmock.h>

#include <optional>

#include "tests/data/support/http_test.h"
#include "tests/data/support/message_of.h"
#include "tests/data/support/written_idx.h"

namespace gradring::data {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using tests::Bytes;

/// Keeps what comes.
class Kept final : public HttpBody {
 public:
  void begin(std::uint64_t first) override {
    EXPECT_FALSE(offset) << "a body begins once";
    offset = first;
  }
  void write(std::span<const std::byte> bytes) override {
    EXPECT_TRUE(offset) << "a body begins before its first byte";
    for (std::byte byte : bytes) content.push_back(std::to_integer<std::uint8_t>(byte));
  }

  Bytes content;
  std::optional<std::uint64_t> offset;
};

class HttpGet : public tests::HttpTest {
 protected:
  std::string url() const { return server_.url() + "file"; }
  std::string error(const std::string& address) {
    return tests::message_of<FetchError>([&] { http_get({.url = address, .timeouts = kShort}, body_); });
  }

  static constexpr HttpTimeouts kShort{.connect = std::chrono::seconds(5), .stall = std::chrono::seconds(1)};
  const Bytes content_ = tests::counting(300'000);
  Kept body_;
};

TEST(WithoutCurl, SaysWhatToInstall) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nowhere", 1);
  EXPECT_EQ(curl_version(), "");
  EXPECT_THAT(tests::message_of<FetchError>([] { require_http(); }), HasSubstr("install it (Debian: curl"));
  ::setenv("PATH", path.c_str(), 1);
}

TEST_F(HttpGet, BringsTheWholeFile) {
  server_.serve("file", {.content = content_});
  http_get({.url = url()}, body_);
  EXPECT_EQ(body_.offset, 0);
  EXPECT_EQ(body_.content, content_);
}

TEST_F(HttpGet, BringsTheRestOfAFile) {
  server_.serve("file", {.content = content_});
  http_get({.url = url(), .begin = 299'990}, body_);
  EXPECT_EQ(body_.offset, 299'990);
  EXPECT_EQ(body_.content, Bytes(content_.end() - 10, content_.end()));
}

TEST_F(HttpGet, SaysThatAServerIgnoredTheRange) {
  server_.serve("file", {.content = content_, .knows_ranges = false});
  http_get({.url = url(), .begin = 10}, body_);
  EXPECT_EQ(body_.offset, 0);
  EXPECT_EQ(body_.content, content_);
}

TEST_F(HttpGet, BringsAnEmptyFile) {
  server_.serve("file", {.content = {}});
  http_get({.url = url()}, body_);
  EXPECT_EQ(body_.offset, 0);
  EXPECT_TRUE(body_.content.empty());
}

TEST_F(HttpGet, TellsTheStatusOfARefusal) {
  for (int status : {204, 300, 403, 404, 416, 500, 503}) {
    server_.serve("file", {.content = content_, .status = status});
    try {
      http_get({.url = url()}, body_);
      ADD_FAILURE() << status << " went through";
    } catch (const HttpStatusError& error) {
      EXPECT_EQ(error.status(), status);
    }
  }
  EXPECT_FALSE(body_.offset);
}

TEST_F(HttpGet, SaysThatAnAnswerBrokeOffAndKeepsWhatCame) {
  server_.serve("file", {.content = content_, .faults = {{.after_bytes = 1000}}});
  EXPECT_THAT(error(url()), Not(HasSubstr("[")));  // a reason, not a line of our source
  EXPECT_EQ(body_.content, Bytes(content_.begin(), content_.begin() + 1000));
}

TEST_F(HttpGet, GivesUpOnAServerThatFallsSilent) {
  server_.serve("file", {.content = content_, .faults = {{.after_bytes = 1000, .stalls = true}}});
  EXPECT_THAT(error(url()), HasSubstr("too slow"));
  EXPECT_EQ(body_.content.size(), 1000);
}

TEST_F(HttpGet, SaysThatNobodyListens) {
  const std::string gone = [] { return tests::HttpServer().url(); }();
  EXPECT_THAT(error(gone + "file"), HasSubstr("127.0.0.1"));
}

TEST_F(HttpGet, FollowsARedirection) {
  server_.serve("old", {.content = {}, .redirect = url()});
  server_.serve("file", {.content = content_});
  http_get({.url = server_.url() + "old", .begin = 5}, body_);
  EXPECT_EQ(body_.offset, 5);
  EXPECT_EQ(body_.content.size(), content_.size() - 5);
}

TEST_F(HttpGet, FollowsNoRedirectionToAnotherScheme) {
  const tests::TempFolder folder;
  const auto secret = folder.write("secret", content_);
  for (const std::string& target : {"file://" + secret.string(), std::string("ftp://127.0.0.1/file")}) {
    server_.serve("old", {.content = {}, .redirect = target});
    EXPECT_THAT(error(server_.url() + "old"), HasSubstr("rotocol")) << target;
  }
  EXPECT_TRUE(body_.content.empty());
}

TEST_F(HttpGet, EndsARoundOfRedirections) {
  server_.serve("file", {.content = {}, .redirect = url()});
  EXPECT_THAT(error(url()), HasSubstr("redirects"));
  EXPECT_LE(server_.requests().size(), 7);
}

TEST_F(HttpGet, TakesNoOtherScheme) {
  for (const char* address : {"file:///etc/hostname", "ftp://127.0.0.1/x", "127.0.0.1/x", ""})
    EXPECT_THAT(tests::message_of<InvalidArgument>([&] { http_get({.url = address}, body_); }), HasSubstr("https://"));
}

TEST_F(HttpGet, LetsTheBodysOwnErrorThrough) {
  class Full final : public HttpBody {
    void begin(std::uint64_t) override {}
    void write(std::span<const std::byte>) override { throw DiskError("here", "is full"); }
  };
  server_.serve("file", {.content = content_});
  Full full;
  EXPECT_THAT(tests::message_of<DiskError>([&] { http_get({.url = url()}, full); }), HasSubstr("here: is full"));
}

}  // namespace
}  // namespace gradring::data
