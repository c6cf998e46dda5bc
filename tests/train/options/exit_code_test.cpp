// SPDX-License-Identifier: Apache-2.0
#include "train/options/exit_code.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <system_error>

#include "comm/transport/error.h"
#include "data/files/byte_source.h"
#include "tests/support/temp_folder.h"
#include "train/core/trainer/replica.h"
#include "train/core/trainer/trainer.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/checkpoint_writer.h"
#include "train/records/checkpoint/error.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// One table for help texts, messages and documents.
TEST(ExitCode, IsDocumentedAsTheTableSays) {
  std::ifstream document(GRADRING_SOURCE_DIR "/docs/faults.md");
  const std::string text{std::istreambuf_iterator<char>(document), {}};
  std::string expected = "| exit code | meaning |\n|---|---|\n";
  for (const auto& [code, meaning] : exit_code_table()) expected += fmt::format("| {} | {} |\n", code, meaning);
  EXPECT_THAT(text, HasSubstr(expected));
}

TEST(ExitCode, IsExplainedInHelpTexts) {
  EXPECT_EQ(exit_codes_text({{0}, {1, "a sum was wrong"}, {-1, "another's"}, {162}}),
            "Exit codes:\n    0  success\n    1  a sum was wrong\n    N  another's\n"
            "  162  a rank timed out or never started\n");
  EXPECT_EQ(own_meaning_of(161), ": a rank was lost");
  EXPECT_EQ(own_meaning_of(1), "") << "any program may return it";
}

TEST(ExitCode, IsThatOfTheKindOfError) {
  EXPECT_EQ(exit_code_of(std::runtime_error("")), 1);
  EXPECT_EQ(exit_code_of(Error("")), 1);
  EXPECT_EQ(exit_code_of(comm::CommError({}, "")), 1);
  EXPECT_EQ(exit_code_of(InvalidArgument("")), 2);
  EXPECT_EQ(exit_code_of(UsageError("")), 2);
  EXPECT_EQ(exit_code_of(EnvironmentError("")), 3);
  EXPECT_EQ(exit_code_of(DeviceError("")), 3);
  EXPECT_EQ(exit_code_of(FileError("write", "f", ENOSPC)), 3);
  EXPECT_EQ(exit_code_of(SaveError("")), 3);
  EXPECT_EQ(exit_code_of(std::bad_alloc()), 3);
  EXPECT_EQ(exit_code_of(std::filesystem::filesystem_error("", std::error_code())), 3);
  EXPECT_EQ(exit_code_of(data::DataError("", "", "")), 4);
  EXPECT_EQ(exit_code_of(DivergedError("")), 5);
  EXPECT_EQ(exit_code_of(comm::PeerLost({}, "")), 161);
  EXPECT_EQ(exit_code_of(comm::Timeout({}, "")), 162);
  EXPECT_EQ(exit_code_of(comm::Desync({}, "")), 163);
  EXPECT_EQ(exit_code_of(ReplicaError("")), 163);
}

TEST(MessageOf, PutsNoMemoryIntoWords) {
  const auto no_thread = std::make_error_code(std::errc::resource_unavailable_try_again);
  EXPECT_EQ(message_of(Error("as it is")), "as it is");
  EXPECT_THAT(message_of(std::system_error(no_thread)),
              AllOf(HasSubstr("cannot start a thread: too many processes"), HasSubstr("ulimit -u is "),
                    HasSubstr("lower --threads")));
  EXPECT_THAT(message_of(std::bad_alloc()), HasSubstr("out of memory: lower --batch-size"));
}

TEST(MessageOf, SaysThatTheCurrentDirectoryWasRemoved) {
  const std::filesystem::path before = std::filesystem::current_path();
  {
    const tests::TempFolder folder;
    std::filesystem::current_path(folder.path());
  }
  std::string message;
  try {
    message = std::filesystem::absolute("runs");
  } catch (const std::filesystem::filesystem_error& error) {
    message = message_of(error);
  }
  std::filesystem::current_path(before);
  EXPECT_EQ(message, "the current directory was removed: change to another one (cd), and try again");
}

}  // namespace
}  // namespace gradring::train
