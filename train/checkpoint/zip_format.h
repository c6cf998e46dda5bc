// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "train/checkpoint/little_endian.h"

namespace gradring::train::zip {

// The records of a zip archive, by their first four bytes and the size of their fixed part.
constexpr std::string_view kLocalHeader = "PK\3\4";
constexpr std::string_view kDirectoryEntry = "PK\1\2";
constexpr std::string_view kEnd = "PK\5\6";
constexpr std::string_view kEnd64 = "PK\6\6";
constexpr std::string_view kEnd64Locator = "PK\6\7";
constexpr std::size_t kLocalHeaderBytes = 30;
constexpr std::size_t kDirectoryEntryBytes = 46;
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kEnd64Bytes = 56;
constexpr std::size_t kEnd64LocatorBytes = 20;

constexpr std::uint32_t kIn64 = 0xffffffff;  ///< "the value stands in the zip64 field"
constexpr std::uint16_t kZip64Field = 1;

inline std::uint16_t u16(std::string_view text, std::size_t at) { return get_little_endian<std::uint16_t>(text, at); }
inline std::uint32_t u32(std::string_view text, std::size_t at) { return get_little_endian<std::uint32_t>(text, at); }
inline std::uint64_t u64(std::string_view text, std::size_t at) { return get_little_endian<std::uint64_t>(text, at); }

}  // namespace gradring::train::zip
