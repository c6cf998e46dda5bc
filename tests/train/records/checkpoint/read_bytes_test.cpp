// SPDX-License-Identifier: Apache-2.0
// Files that promise more than any memory holds. They are sparse, so that their sizes do not contradict them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"
#include "tests/train/records/checkpoint/tensors.h"
#include "train/records/checkpoint/tensor_file.h"

namespace gradring::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::uint64_t kPromised = std::uint64_t{1} << 42;

/// A file that begins with `head`, and zeros up to kPromised bytes after it.
std::filesystem::path sparse_file(const tests::TempFolder& folder, const std::string& head) {
  const auto path = folder.write("file", tests::Bytes(head.begin(), head.end()));
  std::filesystem::resize_file(path, head.size() + kPromised);
  return path;
}

std::string why_too_large(const std::filesystem::path& path) {
  PosixFileSystem files;
  try {
    read_tensor_file(files, path);
  } catch (const MemoryError& error) {
    EXPECT_EQ(error.exit_code(), 4);
    return error.what();
  }
  return "";
}

TEST(ReadBytes, RejectsMoreThanTheMemoryHolds) {
  std::string json = R"({"w":{"dtype":"F32","shape":[1048576,1048576],"data_offsets":[0,4398046511104]}})";
  json.resize(88, ' ');
  std::string npy = "{'descr': '<f4', 'fortran_order': False, 'shape': (1048576, 1048576), }";
  npy.resize(118, ' ');
  for (const std::string& head :
       {static_cast<char>(json.size()) + std::string(7, '\0') + json,
        "\x93NUMPY\1" + std::string(1, '\0') + static_cast<char>(npy.size()) + std::string(1, '\0') + npy}) {
    const tests::TempFolder folder;
    const auto path = sparse_file(folder, head);
    EXPECT_THAT(why_too_large(path), AllOf(HasSubstr(path.string() + " needs 4194304 MiB of memory, but "),
                                           HasSubstr("MiB are available; check where the file is from")));
  }
}

TEST(ReadBytes, ReadsFromTheMiddle) {
  const std::string text = "0123456789";
  const MemoryFile file(bytes_of(text));
  EXPECT_EQ(read_bytes(file, "a", 3, 2), bytes_in(std::vector<char>{'3', '4'}));
  EXPECT_THAT(refusal([&] { read_bytes(file, "a", 8, 3); }), HasSubstr("is truncated"));
}

}  // namespace
}  // namespace gradring::train
