// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gradring::data {

/// Builds one message of Protocol Buffers: fields in the order of the calls. Field numbers come from the .proto file of
/// the format. A message within a message is built by a writer of its own.
///
/// Source    Protocol Buffers, "Encoding".
/// Example   tests/data/files/protobuf_writer_test.cpp
class ProtobufWriter {
 public:
  /// int32, int64, uint64, bool, enum: a varint of seven bits a byte. Negative numbers take ten bytes.
  ProtobufWriter& integer(std::uint32_t field, std::int64_t value) {
    tag(field, kVarint);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  /// float
  ProtobufWriter& real(std::uint32_t field, float value) {
    tag(field, kFixed32);
    fixed(std::bit_cast<std::uint32_t>(value));
    return *this;
  }
  /// double
  ProtobufWriter& real(std::uint32_t field, double value) {
    tag(field, kFixed64);
    fixed(std::bit_cast<std::uint64_t>(value));
    return *this;
  }
  /// string, bytes
  ProtobufWriter& text(std::uint32_t field, std::string_view value) {
    tag(field, kLengthDelimited);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  ProtobufWriter& message(std::uint32_t field, const ProtobufWriter& value) { return text(field, value.bytes_); }
  /// repeated double, packed
  ProtobufWriter& reals(std::uint32_t field, std::span<const double> values) {
    tag(field, kLengthDelimited);
    varint(values.size() * sizeof(double));
    for (const double value : values) fixed(std::bit_cast<std::uint64_t>(value));
    return *this;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  static constexpr std::uint32_t kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5;

  void tag(std::uint32_t field, std::uint32_t wire_type) { varint(std::uint64_t{field} << 3 | wire_type); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  template <class Bits>
  void fixed(Bits bits) {
    for (unsigned shift = 0; shift < 8 * sizeof bits; shift += 8) bytes_ += static_cast<char>(bits >> shift);
  }

  std::string bytes_;
};

}  // namespace gradring::data
