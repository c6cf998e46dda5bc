// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gradring::train::tensorboard {

/// CRC-32C: the polynomial of Castagnoli, reflected.
///
/// Cost      one table look-up a byte.
/// Source    RFC 3720, appendix B.4.
std::uint32_t crc32c(std::string_view bytes);

/// `data` as a record of a TFRecord file:
///
///   u64 length;  u32 masked CRC-32C of the length;  the data;  u32 masked CRC-32C of the data
///
/// All integers are little-endian. A CRC is masked because data that contains its own CRC would be weakly protected.
///
/// Source    tensorflow/core/lib/io/record_writer.h.
std::string record_of(std::string_view data);

}  // namespace gradring::train::tensorboard
