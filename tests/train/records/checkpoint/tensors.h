// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/tensor_record.h"

namespace gradring::train {

template <class T>
std::vector<std::byte> bytes_in(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

template <class T>
TensorRecord tensor(const std::string& name, TensorType type, const std::vector<std::int64_t>& shape,
                    const std::vector<T>& values) {
  return {{name, type, shape}, bytes_in(values)};
}

/// A tensor whose bytes count up from the length of its name.
inline TensorRecord counting(const std::string& name, TensorType type, const std::vector<std::int64_t>& shape) {
  TensorRecord record{{name, type, shape}, std::vector<std::byte>(byte_size(type, shape).value())};
  for (std::size_t i = 0; i < record.bytes.size(); ++i) record.bytes[i] = static_cast<std::byte>(i + name.size());
  return record;
}

/// Tensors of awkward shapes: scalars, no elements, one, odd counts, many extents, all in different types.
inline std::vector<TensorRecord> awkward_tensors() {
  using enum TensorType;
  return {counting("scalar", f32, {}),
          counting("nothing", f32, {0}),
          counting("no.rows", f16, {0, 3}),
          counting("no.columns", i64, {3, 0}),
          counting("one", u8, {1}),
          counting("odd", u8, {31}),
          counting("a.weight", f32, {3, 5, 7}),
          counting("a.bias", f64, {3}),
          counting("steps", i64, {}),
          counting("half", f16, {33}),
          counting("six", i32, {1, 2, 1, 3, 1, 2}),
          counting("bits", boolean, {7}),
          counting("small", i16, {1, 1}),
          counting("signed", i8, {2, 2})};
}

/// The message of the CheckpointError that `act` throws; empty if it throws nothing.
template <class Act>
std::string refusal(Act act) {
  try {
    act();
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "";
}

}  // namespace gradring::train
