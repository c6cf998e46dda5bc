// SPDX-License-Identifier: Apache-2.0
// gradring data, by the program that was built, against a server of the test's own.
#include <gmock/gmock.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "data/fetch/catalogue.h"
#include "tests/data/support/http_test.h"
#include "tests/data/support/written_cifar10.h"
#include "tests/data/support/written_idx.h"
#include "tests/train/app/commands/support/in_shell.h"
#include "tests/train/app/commands/support/workplace.h"

namespace gradring {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using tests::Bytes;
using tests::ProgramEnd;
using tests::Words;
using Seen = tests::HttpRequestSeen;

const tests::Workplace::Variables kNoProxy = {{"no_proxy", "127.0.0.1"}};
constexpr std::size_t kBroken = 4'000'000;

/// The first file of MNIST that is fetched.
const data::KnownFile& first_file() { return data::find_entry("mnist").files.front().file; }

class DataFetch : public tests::HttpTest {
 protected:
  tests::ProgramSpec fetch_spec() const {
    return place_.gradring({"data", "fetch", "mnist", "--data-dir", "sets", "--mirror", server_.url()}, kNoProxy);
  }
  ProgramEnd fetch() const { return tests::run_program(fetch_spec()); }
  std::filesystem::path in_set(const std::string& name) const { return place_.path("sets/mnist") / name; }
  std::filesystem::path part() const { return in_set(std::string(first_file().name) + ".part"); }
  /// As long as MNIST's training images, and something else.
  static Bytes impostor() { return tests::counting(first_file().bytes); }
  void serve_first(tests::ServedFile file) { server_.serve(std::string(first_file().name), std::move(file)); }

  tests::Workplace place_;
};

TEST_F(DataFetch, RejectsAWrongHashAndRemovesTheFile) {
  serve_first({.content = impostor()});
  const ProgramEnd end = fetch();
  EXPECT_EQ(end.code, 4);
  EXPECT_THAT(end.err, AllOf(StartsWith("gradring data: "), HasSubstr(server_.url() + std::string(first_file().name)),
                             HasSubstr("SHA-256"), HasSubstr("--mirror")));
  EXPECT_TRUE(std::filesystem::is_empty(place_.path("sets/mnist")));
}

TEST_F(DataFetch, LeavesThePartThatBrokeOffAndGoesOnFromThere) {
  serve_first({.content = impostor(), .faults = {{.after_bytes = kBroken}, {.after_bytes = 0}}});
  const ProgramEnd broken = fetch();
  EXPECT_EQ(broken.code, 3);
  EXPECT_THAT(broken.err, HasSubstr("the next attempt resumes the part that arrived"));
  EXPECT_EQ(std::filesystem::file_size(part()), kBroken);
  EXPECT_EQ(fetch().code, 4) << "it was the impostor";
  EXPECT_THAT(server_.requests(), Contains(Seen{std::string(first_file().name), kBroken}));
}

TEST_F(DataFetch, ListsEveryAddressThatFailed) {
  tests::ProgramSpec spec = fetch_spec();
  spec.command.insert(spec.command.end(), {"--mirror", server_.url() + "other"});
  const ProgramEnd end = tests::run_program(spec);
  EXPECT_EQ(end.code, 3);
  EXPECT_THAT(end.err, AllOf(HasSubstr(server_.url() + "train-images"), HasSubstr(server_.url() + "other/train-images"),
                             HasSubstr("the server answered 404")));
}

TEST_F(DataFetch, TakesOnlyHttp) {
  const ProgramEnd end = place_.run({"data", "fetch", "mnist", "--mirror", "file:///tmp"});
  EXPECT_EQ(end.code, 2);
  EXPECT_THAT(end.err, HasSubstr("--mirror is 'file:///tmp'"));
}

/// With MNIST's own files, where the machine has them.
class RealDataFetch : public DataFetch {
 protected:
  void SetUp() override {
    DataFetch::SetUp();
    if (IsSkipped()) return;
    const char* folder = std::getenv("GRADRING_DATA_DIR");
    if (!folder) GTEST_SKIP() << "GRADRING_DATA_DIR is not set";
    for (const data::CatalogueFile& file : data::find_entry("mnist").files) {
      std::ifstream stream(std::filesystem::path(folder) / "mnist" / file.file.name, std::ios::binary);
      if (!stream) GTEST_SKIP() << "GRADRING_DATA_DIR has no " << file.file.name;
      contents_[std::string(file.file.name)] = Bytes(std::istreambuf_iterator<char>(stream), {});
    }
    for (const auto& [name, content] : contents_) server_.serve(name, {.content = content});
  }

  void expect_whole() const {
    const ProgramEnd verified = place_.run({"data", "verify", "mnist", "--data-dir", "sets"});
    EXPECT_EQ(verified.code, 0) << verified.err;
    EXPECT_THAT(verified.out, Not(HasSubstr("BAD")));
    EXPECT_FALSE(std::filesystem::exists(part()));
  }

  std::map<std::string, Bytes> contents_;
};

TEST_F(RealDataFetch, BringsMnistReadyToTrain) {
  const ProgramEnd end = fetch();
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("gradring train --dataset mnist --data-dir sets"));
  expect_whole();
  EXPECT_EQ(place_.run({"train", "--dataset", "mnist", "--data-dir", "sets", "--dry-run"}).code, 0);
}

TEST_F(RealDataFetch, IsAFailureWhereStandardOutputIsLost) {
  for (const char* action : {"fetch", "verify"}) {
    tests::ProgramSpec spec = fetch_spec();
    spec.command[2] = action;
    if (spec.command[2] == "verify") spec.command.resize(6);  // no --mirror
    const ProgramEnd end = tests::run_program(tests::in_shell(spec, "exec \"$@\" > /dev/full"));
    EXPECT_EQ(end.code, 3) << end.err;
    EXPECT_THAT(end.err, HasSubstr("No space left on device"));
  }
}

TEST_F(RealDataFetch, ResumesAfterTheServerBrokeOff) {
  const std::string name(first_file().name);
  serve_first({.content = contents_[name], .faults = {{.after_bytes = kBroken}, {.after_bytes = 0}}});
  EXPECT_EQ(fetch().code, 3);
  EXPECT_EQ(fetch().code, 0);
  EXPECT_THAT(server_.requests(), Contains(Seen{name, kBroken}));
  expect_whole();
}

TEST_F(RealDataFetch, ResumesAfterItWasKilled) {
  const std::string name(first_file().name);
  serve_first({.content = contents_[name], .faults = {{.after_bytes = kBroken, .stalls = true}}});
  {
    tests::RunningProgram program(fetch_spec());
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    std::error_code absent;
    while (std::filesystem::file_size(part(), absent) != kBroken && std::chrono::steady_clock::now() < patience)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ::kill(program.pid(), SIGKILL);
    EXPECT_EQ(program.wait().code, 128 + SIGKILL);
  }
  EXPECT_EQ(std::filesystem::file_size(part()), kBroken);
  EXPECT_EQ(fetch().code, 0);
  EXPECT_THAT(server_.requests(), Contains(Seen{name, kBroken}));
  expect_whole();
}

class DataCommand : public ::testing::Test {
 protected:
  tests::Workplace place_;
};

TEST_F(DataCommand, VerifiesFileByFile) {
  const ProgramEnd end = place_.run({"data", "verify", "mnist", "--data-dir", "data"});
  EXPECT_EQ(end.code, 4);
  EXPECT_THAT(end.out, HasSubstr("BAD  data/train-images-idx3-ubyte: has 50192 bytes, expected 47040016"));
  EXPECT_THAT(end.err, HasSubstr("4 of 4 files of mnist are missing or wrong; get them: gradring data fetch mnist"));
}

TEST_F(DataCommand, SaysWhatThereIs) {
  const ProgramEnd end = place_.run({"data", "info"});
  EXPECT_EQ(end.code, 0);
  EXPECT_THAT(end.out, AllOf(HasSubstr("mnist\n"), HasSubstr("cifar10\n"), HasSubstr("170 MB to fetch")));
}

TEST_F(DataCommand, SaysWhatADataSetHolds) {
  tests::write_cifar10(place_.folder(), "data", 4);
  const ProgramEnd end = place_.run({"data", "info", "cifar10", "--data-dir", "data"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out,
              AllOf(HasSubstr("train  20 samples of [32, 32, 3], 10 classes of 2 to 2"), HasSubstr("test   4")));
}

TEST_F(DataCommand, NamesTheNearest) {
  const std::pair<Words, const char*> mistakes[] = {
      {{"data", "ftech"}, "Did you mean 'fetch'?"},
      {{"data", "fetch", "mnits"}, "Did you mean 'mnist'?"},
      {{"data", "fetch"}, "expected one NAME, found 0 arguments"},
      {{"data", "fetch", "mnist", "cifar10"}, "expected one NAME, found 2 arguments"},
      {{"data", "verify", "digits"}, "digits is generated"}};
  for (const auto& [words, said] : mistakes) {
    const ProgramEnd end = place_.run(words);
    EXPECT_EQ(end.code, 2);
    EXPECT_THAT(end.err, HasSubstr(said));
  }
  EXPECT_THAT(place_.left(), IsEmpty());
}

TEST_F(DataCommand, TrainsOnCifar10InTwoRanks) {
  tests::write_cifar10(place_.folder(), "data", 8);
  const ProgramEnd end =
      place_.run({"train", "--dataset", "cifar10", "--data-dir", "data", "--nprocs", "2", "--steps", "2",
                  "--batch-size", "4", "--run-dir", "run", "--progress", "none", "--check-replicas", "1"});
  EXPECT_EQ(end.code, 0) << end.err;
}

}  // namespace
}  // namespace gradring
