// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "kernels/lib/level_copies.h"
#include "kernels/simulated_gpu/machine/decoder.h"
#include "kernels/simulated_gpu/machine/program.h"

namespace gradring::simulated_gpu {

/// Fills in an operation: its handler, and the rows that it reads and writes.
///
/// Errors    Unsupported.
using Translator = void (*)(Decoder& decoder, Operation& operation);

struct Opcode {
  std::string_view name;  ///< the first word
  Translator translate;
};

/// Null if the instruction is not known.
Translator translator_of(const ptx::Instruction& instruction);
/// The operation behind the last one: the threads that come there have ended.
Operation end_of_kernel(FrameLayout& frame);
/// barrier.cluster
void translate_cluster_barrier(Decoder& decoder, Operation& operation);
/// Whether it is wgmma.mma_async, which may access accumulators of others that are under way.
bool is_wgmma(const Operation& operation);

// Each file of this folder has its part. What is nothing but loops over lanes is compiled once for each level of the
// instruction set.
GRADRING_DECLARE_COPIES(std::span<const Opcode>, integer_opcodes);
GRADRING_DECLARE_COPIES(std::span<const Opcode>, bit_opcodes);
GRADRING_DECLARE_COPIES(std::span<const Opcode>, float_opcodes);  ///< of f32 and f64, whose names integers share
GRADRING_DECLARE_COPIES(std::span<const Opcode>, comparison_opcodes);
GRADRING_DECLARE_COPIES(std::span<const Opcode>, conversion_opcodes);
std::span<const Opcode> half_opcodes();  ///< of f16 and bf16
std::span<const Opcode> half_function_opcodes();
std::span<const Opcode> function_opcodes();  ///< roots, exponentials
std::span<const Opcode> float_division_opcodes();
std::span<const Opcode> carry_opcodes();  ///< add.cc and others, which share names with integers
std::span<const Opcode> packed_integer_opcodes();
std::span<const Opcode> set_opcodes();
std::span<const Opcode> hint_opcodes();
std::span<const Opcode> move_opcodes();
std::span<const Opcode> memory_opcodes();
std::span<const Opcode> control_opcodes();
std::span<const Opcode> call_opcodes();
std::span<const Opcode> warp_opcodes();
std::span<const Opcode> tensor_core_opcodes();   ///< mma, wmma, ldmatrix
std::span<const Opcode> asynchronous_opcodes();  ///< cp.async, mbarrier
std::span<const Opcode> cluster_opcodes();       ///< mapa, getctarank
std::span<const Opcode> warpgroup_opcodes();     ///< wgmma

// Translators of what another file takes the first words of.
//
// Errors    Unsupported.

/// Any cvt, also those that conversion.cpp knows, which are faster there.
void translate_any_conversion(Decoder& decoder, Operation& operation);
/// cp.async.bulk and cp.reduce.async.bulk, behind .bulk: `reduces` for the second.
void translate_bulk_copy(Decoder& decoder, Operation& operation, bool reduces);
/// mma and wmma, behind .sync.aligned, of all types and shapes but those of mma.h.
void translate_mma_of_type(Decoder& decoder, Operation& operation);
void translate_wmma_of_type(Decoder& decoder, Operation& operation);

}  // namespace gradring::simulated_gpu
