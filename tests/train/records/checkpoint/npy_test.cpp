// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/tensor_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/allocated_bytes.h"
#include "tests/train/records/checkpoint/tensors.h"
#include "tests/train/support/memory_disk.h"
#include "train/records/checkpoint/file_system.h"

namespace gradring::train {
namespace {

using testing::HasSubstr;

TensorRecord read(const std::string& file) { return read_npy(MemoryFile(std::as_bytes(std::span(file))), "array.npy"); }

std::string why_npy_refused(const std::string& file) {
  return refusal([&] { read(file); });
}

/// Version 1.0 with a header that is not padded, or 2.0, and data.
std::string file_of(const std::string& header, std::size_t data_bytes, char version = 1) {
  std::string file = std::string("\x93NUMPY") + version + '\0' + static_cast<char>(header.size() & 0xff) +
                     static_cast<char>(header.size() >> 8);
  if (version > 1) file += std::string(2, '\0');
  return file + header + std::string(data_bytes, 'x');
}

std::string dictionary(const std::string& shape, const std::string& descr = "'<f4'") {
  return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }";
}

TEST(Npy, ReadsFortranOrder) {
  std::string file = file_of("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2), }", 0);
  for (char value = 0; value < 12; ++value) file += value;
  // numpy.arange(12).reshape((2, 3, 2), order="F").tobytes()
  const std::vector<std::uint8_t> expected = {0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11};
  EXPECT_EQ(read(file), tensor("", TensorType::u8, {2, 3, 2}, expected));
  EXPECT_EQ(read(file_of("{'descr': '<f4', 'fortran_order': True, 'shape': (0, 100000000), }", 0)).bytes.size(), 0u);
}

TEST(Npy, ReadsBigEndianNumbers) {
  EXPECT_EQ(read(file_of(dictionary("(2,)", "'>i2'"), 0) + std::string("\0\1\1\0", 4)),
            tensor<std::int16_t>("", TensorType::i16, {2}, {1, 256}));
  EXPECT_EQ(read(file_of(dictionary("(1,)", "'>c8'"), 0) + std::string("\x3f\x80\0\0\xc0\0\0\0", 8)),
            tensor<float>("", TensorType::c64, {1}, {1, -2}));
}

TEST(Npy, RoundTripsAwkwardShapes) {
  for (TensorRecord tensor : awkward_tensors()) {
    tests::MemoryDisk disk;
    write_npy(disk, "/a", tensor);
    const TensorRecord back = read_npy(*disk.open("/a"), "/a");
    tensor.name = "";
    EXPECT_EQ(back, tensor);
  }
}

TEST(Npy, WritesNumPysBytes) {
  tests::MemoryDisk disk;
  write_npy(disk, "/a", tensor<float>("w", TensorType::f32, {2, 1}, {1, 2}));
  const auto& bytes = disk.bytes_of("/a");
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::string expected = std::string("\x93NUMPY\1\0\x76\0", 10) + dictionary("(2, 1)");
  expected.resize(127, ' ');
  EXPECT_EQ(text.substr(0, 128), expected + "\n");
  EXPECT_EQ(text.size(), 128u + 8);
}

TEST(Npy, ReadsEveryVersionAndSpelling) {
  EXPECT_EQ(read(file_of(dictionary("(2, 3)"), 24, 2)).shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(read(file_of(dictionary("(2, 3)"), 24, 3)).shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(read(file_of(dictionary("()"), 4)).shape, (std::vector<std::int64_t>{}));
  EXPECT_EQ(read(file_of(dictionary("(3L,)"), 12)).shape, (std::vector<std::int64_t>{3}));
  EXPECT_EQ(read(file_of("{\"shape\":(0,5),\"fortran_order\":False,\"descr\":\"|u1\"}   \n", 0)).type, TensorType::u8);
}

TEST(Npy, RejectsInvalidFiles) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "too short"},
      {std::string("\x93NUMPX\1\0\0\0", 10), "does not begin with the magic"},
      {std::string("\x93NUMPY\1", 7), "too short"},
      {std::string("\x93NUMPY\4\0\0\0", 10), "version 4"},
      {std::string("\x93NUMPY\0\0\0\0", 10), "version 0"},
      {std::string("\x93NUMPY\1\0\xff\0{", 11), "ends at byte 11"},
      {std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12), "header of 4294967295 bytes"},
      {file_of(dictionary("(2,)"), 7), "holds 7 bytes"},
      {file_of(dictionary("(2,)"), 9), "holds 9 bytes"},
      {file_of(dictionary("(4294967296, 4294967296, 4)"), 0), "holds 0 bytes"},
      {file_of(dictionary("(99999999999999999999,)"), 0), "unknown header"},
      {file_of(dictionary("(-1,)"), 0), "unknown header"},
      {file_of(dictionary("(2)"), 8), "unknown header"},
      {file_of(dictionary("[2]"), 8), "unknown header"},
      {file_of(dictionary("(2,", "'<f4'"), 8), "unknown header"},
      {file_of(dictionary("(2,)", "'>f1'"), 2), "elements of type '>f1'"},
      {file_of(dictionary("(2,)", "'|O'"), 8), "Python objects"},
      {file_of(dictionary("(2,)", "[('a', '<f4')]"), 8), "unknown header"},
      {file_of(dictionary("(2,)", "'<U4'"), 8), "type '<U4'"},
      {file_of("{'descr': '<f4', 'fortran_order': False, }", 8), "unknown header"},
      {file_of("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 8), "unknown header"},
      {file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}", 8), "unknown header"},
      {file_of(dictionary("(2,)") + "x", 8), "unknown header"},
      {file_of("", 0), "unknown header"},
  };
  for (const auto& [file, found] : cases) EXPECT_THAT(why_npy_refused(file), HasSubstr(found)) << file;
}

TEST(Npy, BoundsMemoryOfHostileHeader) {
  const std::string file = file_of(dictionary("(1000000000, 1000)"), 8);
  const std::size_t before = tests::allocated_bytes();
  tests::reset_peak_allocated_bytes();
  EXPECT_NE(why_npy_refused(file), "");
  EXPECT_LT(tests::peak_allocated_bytes() - before, 1u << 20);
}

TEST(Npy, RejectsUnsupportedTypesOnWrite) {
  tests::MemoryDisk disk;
  EXPECT_THROW(write_npy(disk, "/a", counting("a", TensorType::bf16, {2})), InvalidArgument);
  auto short_one = counting("a", TensorType::f32, {2});
  short_one.bytes.pop_back();
  EXPECT_THROW(write_npy(disk, "/a", short_one), InvalidArgument);
}

}  // namespace
}  // namespace gradring::train
