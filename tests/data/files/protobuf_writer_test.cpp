// SPDX-License-Identifier: Apache-2.0
#include "data/files/protobuf_writer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gradring::data {
namespace {

using namespace std::literals;

// The examples of Protocol Buffers' page "Encoding"; onnx and TensorBoard read the rest (tests/train).
TEST(ProtobufWriter, EncodesTheExamplesOfTheSpecification) {
  EXPECT_EQ(ProtobufWriter().integer(1, 150).bytes(), "\x08\x96\x01"s);
  EXPECT_EQ(ProtobufWriter().text(2, "testing").bytes(), "\x12\x07testing"s);
  EXPECT_EQ(ProtobufWriter().message(3, ProtobufWriter().integer(1, 150)).bytes(), "\x1a\x03\x08\x96\x01"s);
  EXPECT_EQ(ProtobufWriter().integer(1, -2).bytes(), "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"s);
}

TEST(ProtobufWriter, WritesNumbersLittleEndian) {
  EXPECT_EQ(ProtobufWriter().real(2, 1.5f).bytes(), "\x15\x00\x00\xc0\x3f"s);
  EXPECT_EQ(ProtobufWriter().real(1, 1.0).bytes(), "\x09\x00\x00\x00\x00\x00\x00\xf0\x3f"s);
  EXPECT_EQ(ProtobufWriter().reals(16, std::vector{1.0}).bytes(), "\x82\x01\x08\x00\x00\x00\x00\x00\x00\xf0\x3f"s);
  EXPECT_EQ(ProtobufWriter().integer(1, 0).bytes(), "\x08\x00"s);
}

}  // namespace
}  // namespace gradring::data
