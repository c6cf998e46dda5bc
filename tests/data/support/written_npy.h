// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temp_folder.h"

namespace gradring::tests {

/// The bytes of a .npy file of version 1 with this dictionary as its header, whether or not the values fit it.
inline Bytes npy_bytes(std::string_view header, const Bytes& values) {
  Bytes bytes = {0x93,
                 'N',
                 'U',
                 'M',
                 'P',
                 'Y',
                 1,
                 0,
                 static_cast<std::uint8_t>(header.size() & 0xff),
                 static_cast<std::uint8_t>(header.size() >> 8)};
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

/// As numpy.save writes an array in row-major order: npy_bytes("|u1", "(2, 3)", ...).
inline Bytes npy_bytes(std::string_view descr, std::string_view shape, const Bytes& values) {
  return npy_bytes(
      "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': " + std::string(shape) + ", }\n",
      values);
}

/// The bytes of these values, as they lie in memory.
template <class Value>
Bytes bytes_of(const std::vector<Value>& values) {
  Bytes bytes(values.size() * sizeof(Value));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// The file of a data set of arrays: two training samples of 2 x 3 grey pixels, of the classes 0 and 2, and a test
/// sample.
inline void write_arrays(const TempFolder& folder) {
  folder.write("train_images.npy", npy_bytes("|u1", "(2, 2, 3)", {0, 1, 2, 3, 4, 5, 250, 251, 252, 253, 254, 255}));
  folder.write("train_labels.npy", npy_bytes("<i8", "(2,)", bytes_of<std::int64_t>({2, 0})));
  folder.write("test_images.npy", npy_bytes("|u1", "(1, 2, 3)", {9, 8, 7, 6, 5, 4}));
  folder.write("test_labels.npy", npy_bytes("<i8", "(1,)", bytes_of<std::int64_t>({1})));
}

}  // namespace gradring::tests
