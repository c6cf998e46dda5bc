// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace gradring::ptx {

/// Decompresses an LZ4 block, which becomes exactly `bytes` bytes.
///
/// Errors    PtxError if it is damaged, or becomes fewer or more bytes.
/// Source    LZ4 Block Format Description, Y. Collet, 2022.
std::string decompress_lz4(std::span<const std::byte> block, std::size_t bytes);

}  // namespace gradring::ptx
