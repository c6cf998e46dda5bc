// SPDX-License-Identifier: Apache-2.0
#include "train/cli/exit_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <new>
#include <system_error>

#include "comm/error.h"
#include "data/files/byte_source.h"
#include "train/checkpoint/checkpoint_writer.h"
#include "train/checkpoint/error.h"
#include "train/options/usage_error.h"
#include "train/report/environment_error.h"
#include "train/trainer/replica.h"
#include "train/trainer/trainer.h"

namespace gradring::train {
namespace {

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
              ::testing::HasSubstr("cannot start a thread: too little memory"));
  EXPECT_THAT(message_of(std::bad_alloc()), ::testing::HasSubstr("out of memory: lower --batch-size"));
}

}  // namespace
}  // namespace gradring::train
