// SPDX-License-Identifier: Apache-2.0
#include "data/fetch/fetch.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "data/fetch/http.h"
#include "data/files/byte_source.h"
#include "tests/data/support/heard.h"
#include "tests/data/support/http_test.h"
#include "tests/data/support/known.h"
#include "tests/data/support/message_of.h"
#include "tests/data/support/written_idx.h"

namespace gradring::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tests::Bytes;
using Seen = tests::HttpRequestSeen;

class DownloadTest : public tests::HttpTest {
 protected:
  /// From the mirrors a/, b/, ... of the server, as many as are asked for.
  void get(std::size_t mirrors = 1) {
    std::vector<std::string> addresses;
    for (std::size_t i = 0; i < mirrors; ++i) addresses.push_back(server_.url() + static_cast<char>('a' + i));
    download({.file = known_.file(),
              .folder = folder(),
              .mirrors = addresses,
              .timeouts = {.connect = std::chrono::seconds(5), .stall = std::chrono::seconds(1)}},
             heard_);
  }
  template <class E>
  std::string error(std::size_t mirrors = 1) {
    return tests::message_of<E>([&] { get(mirrors); });
  }

  std::filesystem::path folder() const { return temp_.path() / "set"; }
  Bytes read(const std::string& name) const {
    std::ifstream file(folder() / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// What lies in the folder.
  std::vector<std::string> left() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder())) names.push_back(entry.path().filename());
    return names;
  }
  void leave_part(const Bytes& bytes) const { temp_.write("set/file.part", bytes); }
  Bytes front(std::size_t bytes) const {
    return {content_.begin(), content_.begin() + static_cast<std::ptrdiff_t>(bytes)};
  }
  /// As long as the file, and another.
  Bytes other() const {
    Bytes other = content_;
    other.back() ^= 1;
    return other;
  }

  const Bytes content_ = tests::counting(200'000);
  const tests::Known known_{"file", content_};
  const tests::TempFolder temp_;
  tests::Heard heard_;
};

TEST_F(DownloadTest, BringsAFileUnderItsName) {
  server_.serve("a/file", {.content = content_});
  get();
  EXPECT_EQ(read("file"), content_);
  EXPECT_THAT(left(), ElementsAre("file"));
  EXPECT_THAT(heard_.finished, ElementsAre("file"));
  EXPECT_EQ(heard_.most_arrived, content_.size());
}

TEST_F(DownloadTest, GoesOnByItselfWhereAnAnswerBrokeOff) {
  server_.serve("a/file", {.content = content_, .faults = {{.after_bytes = 70'000}, {.after_bytes = 50'000}}});
  get();
  EXPECT_EQ(read("file"), content_);
  EXPECT_THAT(server_.requests(), ElementsAre(Seen{"a/file", 0}, Seen{"a/file", 70'000}, Seen{"a/file", 120'000}));
}

TEST_F(DownloadTest, GoesOnInTheNextRun) {
  server_.serve("a/file", {.content = content_, .faults = {{.after_bytes = 70'000}, {.after_bytes = 0}}});
  EXPECT_THAT(error<FetchError>(), HasSubstr("the next attempt resumes the part"));
  EXPECT_EQ(read("file.part"), front(70'000));
  EXPECT_FALSE(std::filesystem::exists(folder() / "file"));
  get();
  EXPECT_EQ(read("file"), content_);
  EXPECT_EQ(server_.requests().back(), (Seen{"a/file", 70'000}));
  EXPECT_THAT(left(), ElementsAre("file"));
}

TEST_F(DownloadTest, GoesOnWithTheNextMirror) {
  server_.serve("a/file", {.content = content_, .faults = {{.after_bytes = 70'000}, {.after_bytes = 0}}});
  server_.serve("b/file", {.content = content_});
  get(2);
  EXPECT_EQ(read("file"), content_);
  EXPECT_EQ(server_.requests().back(), (Seen{"b/file", 70'000}));
}

TEST_F(DownloadTest, AsksAServerThatBreaksOffAgainAndAgainOnlySoOften) {
  const std::vector<tests::HttpFault> faults(100, {.after_bytes = 1000});
  server_.serve("a/file", {.content = content_, .faults = faults});
  error<FetchError>();
  EXPECT_LE(server_.requests().size(), 10);
}

TEST_F(DownloadTest, GivesUpOnAServerThatFallsSilent) {
  server_.serve("a/file", {.content = content_, .faults = {{.after_bytes = 0, .stalls = true}}});
  server_.serve("b/file", {.content = content_});
  get(2);
  EXPECT_EQ(read("file"), content_);
  EXPECT_THAT(heard_.failures, ElementsAre(AllOf(HasSubstr("a/file"), HasSubstr("too slow"))));
}

TEST_F(DownloadTest, BeginsAnewWhereTheServerKnowsNoRanges) {
  leave_part(front(70'000));
  server_.serve("a/file", {.content = content_, .knows_ranges = false});
  get();
  EXPECT_EQ(read("file"), content_);
  EXPECT_THAT(server_.requests(), ElementsAre(Seen{"a/file", 70'000}));
}

TEST_F(DownloadTest, BeginsAnewWhereThePartIsLongerThanTheFile) {
  leave_part(Bytes(content_.size() + 1));
  server_.serve("a/file", {.content = content_});
  get();
  EXPECT_EQ(read("file"), content_);
  EXPECT_THAT(server_.requests(), ElementsAre(Seen{"a/file", 0}));
}

TEST_F(DownloadTest, AsksForNothingWhereThePartIsWhole) {
  leave_part(content_);
  get();
  EXPECT_EQ(read("file"), content_);
  EXPECT_THAT(server_.requests(), IsEmpty());
}

TEST_F(DownloadTest, RejectsAWrongHashAndRemovesTheFile) {
  server_.serve("a/file", {.content = other()});
  EXPECT_THAT(error<DataError>(), AllOf(HasSubstr("a/file: the file has SHA-256 " + tests::sha256_of(other())),
                                        HasSubstr("expected " + tests::sha256_of(content_)), HasSubstr("--mirror")));
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(DownloadTest, RejectsAFileOfAnotherLength) {
  Bytes longer = content_;
  longer.resize(content_.size() + 100'000);
  for (const auto& [content, reason] :
       {std::pair(front(199'999), "has 199999 bytes, expected 200000"), std::pair(longer, "longer than 200000 bytes"),
        std::pair(Bytes(), "has 0 bytes")}) {
    server_.serve("a/file", {.content = content});
    EXPECT_THAT(error<DataError>(), HasSubstr(reason));
    EXPECT_THAT(left(), IsEmpty());
  }
}

TEST_F(DownloadTest, TakesTheNextMirrorAfterAWrongHash) {
  server_.serve("a/file", {.content = other()});
  server_.serve("b/file", {.content = content_});
  get(2);
  EXPECT_EQ(read("file"), content_);
  EXPECT_THAT(server_.requests(), ElementsAre(Seen{"a/file", 0}, Seen{"b/file", 0}));
  EXPECT_EQ(heard_.failures.size(), 1);
}

TEST_F(DownloadTest, DoesNotBlameAMirrorForAPartThatWasWrong) {
  leave_part(Bytes(70'000, 0xee));
  server_.serve("a/file", {.content = content_});
  get();
  EXPECT_EQ(read("file"), content_);
  EXPECT_THAT(server_.requests(), ElementsAre(Seen{"a/file", 70'000}, Seen{"a/file", 0}));
}

TEST_F(DownloadTest, BeginsAnewWhereTheServersFileEndsBeforeThePart) {
  leave_part(Bytes(70'000, 0xee));
  server_.serve("a/file", {.content = front(100)});
  EXPECT_THAT(error<DataError>(), HasSubstr("has 100 bytes"));
  EXPECT_EQ(server_.requests().front(), (Seen{"a/file", 70'000}));
  EXPECT_EQ(server_.requests().at(1), (Seen{"a/file", 0}));
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(DownloadTest, ListsEveryAddressAndItsReason) {
  server_.serve("b/file", {.content = content_, .status = 503});
  const std::string message = error<FetchError>(2);
  EXPECT_THAT(message, AllOf(HasSubstr(server_.url() + "a/file: the server answered 404"),
                             HasSubstr(server_.url() + "b/file: the server answered 503"),
                             HasSubstr((folder() / "file").string())));
  EXPECT_THAT(left(), IsEmpty()) << "nothing came, nothing stays";
}

TEST_F(DownloadTest, CallsItBadDataIfAnyMirrorSentAnotherFile) {
  server_.serve("a/file", {.content = other()});
  EXPECT_THAT(error<DataError>(2), AllOf(HasSubstr("SHA-256"), HasSubstr("the server answered 404")));
}

TEST_F(DownloadTest, SaysThatTheFolderCannotBeMade) {
  temp_.write("set", content_);  // a file in its place
  server_.serve("a/file", {.content = content_});
  EXPECT_THAT(error<DiskError>(), AllOf(HasSubstr("set"), HasSubstr("--data-dir")));
  EXPECT_THAT(server_.requests(), IsEmpty());
}

TEST_F(DownloadTest, LeavesTheFileToTheOneThatFetchesItAlready) {
  server_.serve("a/file", {.content = content_});
  {
    const PartFile held(folder() / "file");
    EXPECT_THAT(error<FetchError>(), HasSubstr("another process"));
  }
  get();
  EXPECT_EQ(read("file"), content_);
}

/// Another process may download the same file where the folder was.
TEST_F(DownloadTest, PublishesInTheFolderInWhichItBegan) {
  const std::filesystem::path moved = temp_.path() / "moved";
  PartFile part(folder() / "file");
  part.append(std::as_bytes(std::span(content_)));
  std::filesystem::rename(folder(), moved);
  PartFile other(folder() / "file");
  part.publish();
  EXPECT_EQ(std::filesystem::file_size(moved / "file"), content_.size());
  EXPECT_FALSE(std::filesystem::exists(folder() / "file"));
  other.publish();
  EXPECT_EQ(std::filesystem::file_size(folder() / "file"), 0u);
}

}  // namespace
}  // namespace gradring::data
