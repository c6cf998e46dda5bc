// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
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
  std::span<const std::byte> elf;                        ///< in the fat binary, or `decompressed`
  std::shared_ptr<const std::string> decompressed = {};  ///< null if it was not compressed
};

/// The PTX that nvcc embedded, from the wrapper that its host code passes to __cudaRegisterFatBinary.
///
/// Errors    PtxError if the wrapper or the container is not known, or compressed text is damaged: by LZ4 (every nvcc
///           before 12.8, and --compress-mode=speed), or by Zstandard (the others), which needs libzstd.
std::vector<EmbeddedPtx> embedded_ptx(const void* fat_binary_wrapper);

/// The same of the container that a wrapper points to. What follows the container in `bytes` is not looked at.
std::vector<EmbeddedPtx> embedded_ptx(std::span<const std::byte> bytes);

/// The machine code that nvcc embedded, from the same wrapper.
///
/// Errors    as embedded_ptx. nvcc compresses code with --compress-mode=size.
std::vector<EmbeddedCode> embedded_code(const void* fat_binary_wrapper);
std::vector<EmbeddedCode> embedded_code(std::span<const std::byte> bytes);

/// Decompresses an LZ4 block, which becomes exactly `bytes` bytes.
///
/// Errors    PtxError if it is damaged, or becomes fewer or more bytes.
/// Source    LZ4 Block Format Description, Y. Collet, 2022.
std::string decompress_lz4(std::span<const std::byte> block, std::size_t bytes);

/// Decompresses a Zstandard frame, which becomes exactly `bytes` bytes.
///
/// Errors    PtxError if it is damaged, or becomes fewer or more bytes; or if this build has no libzstd: says what to
///           do.
/// Source    RFC 8878, Zstandard Compression, 2021.
std::string decompress_zstandard(std::span<const std::byte> frame, std::size_t bytes);
bool has_zstandard();

}  // namespace gradring::ptx
