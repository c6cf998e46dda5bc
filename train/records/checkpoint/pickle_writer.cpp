// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <limits>
#include <utility>

#include "train/records/checkpoint/file_system.h"
#include "train/records/checkpoint/pickle.h"

namespace gradring::train {

PickleWriter::PickleWriter() {
  put(PickleOpcode::protocol);
  bytes_ += '\2';
}

void PickleWriter::text(std::string_view value) {
  put(PickleOpcode::text4);
  put_little_endian(bytes_, static_cast<std::uint32_t>(value.size()));
  bytes_ += value;
}

void PickleWriter::integer(std::int64_t value) {
  if (value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max()) {
    put(PickleOpcode::int4);
    put_little_endian(bytes_, static_cast<std::uint32_t>(value));
  } else {
    put(PickleOpcode::long1);
    bytes_ += '\10';  // eight bytes
    put_little_endian(bytes_, static_cast<std::uint64_t>(value));
  }
}

void PickleWriter::real(double value) {
  std::string bytes;
  put_little_endian(bytes, std::bit_cast<std::uint64_t>(value));
  put(PickleOpcode::real);
  bytes_.append(bytes.rbegin(), bytes.rend());
}

void PickleWriter::integers(std::span<const std::int64_t> values) {
  mark();
  for (std::int64_t value : values) integer(value);
  end_tuple();
}

void PickleWriter::global(std::string_view module, std::string_view name) {
  put(PickleOpcode::global);
  bytes_ += module;
  bytes_ += '\n';
  bytes_ += name;
  bytes_ += '\n';
}

void PickleWriter::empty_ordered_dict() {
  global("collections", "OrderedDict");
  put(PickleOpcode::empty_tuple);
  call();
}

std::string PickleWriter::finish() {
  put(PickleOpcode::stop);
  return std::move(bytes_);
}

}  // namespace gradring::train
