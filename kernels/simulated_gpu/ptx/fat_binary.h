// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace gradring::ptx {

/// One PTX text of a fat binary, and what it is for.
struct EmbeddedPtx {
  int compute_capability = 0;  ///< 90, of sm_90a as well: Module::target tells them apart
  std::string text;
};

/// What ptxas made of a PTX text: an ELF file (a cubin).
struct EmbeddedCode {
  int compute_capability = 0;
  std::span<const std::byte> elf;  ///< in the fat binary
};

/// The PTX that nvcc embedded, from the wrapper that its host code passes to __cudaRegisterFatBinary.
///
/// Errors    PtxError if the wrapper, the container or a compression is not known. LZ4 is (nvcc --compress-mode=speed,
///           and every nvcc before 12.8), Zstandard is not.
std::vector<EmbeddedPtx> embedded_ptx(const void* fat_binary_wrapper);

/// The same of the container that a wrapper points to. What follows the container in `bytes` is not looked at.
std::vector<EmbeddedPtx> embedded_ptx(std::span<const std::byte> bytes);

/// The machine code that nvcc embedded, from the same wrapper.
///
/// Errors    as embedded_ptx; PtxError if code is compressed, which nvcc --compress-mode=speed does not do.
std::vector<EmbeddedCode> embedded_code(const void* fat_binary_wrapper);
std::vector<EmbeddedCode> embedded_code(std::span<const std::byte> bytes);

/// Decompresses an LZ4 block, which becomes exactly `bytes` bytes.
///
/// Errors    PtxError if it is damaged, or becomes fewer or more bytes.
/// Source    LZ4 Block Format Description, Y. Collet, 2022.
std::string decompress_lz4(std::span<const std::byte> block, std::size_t bytes);

}  // namespace gradring::ptx
