// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/counters/summary.h"

#include <charconv>
#include <string>

namespace gradring::simulated_gpu {
namespace {

using enum InstructionClass;

/// Opcodes of a class.
struct ClassOpcodes {
  InstructionClass own;
  std::string_view names;  ///< each between blanks
};

/// Those whose class does not depend on types or other words.
constexpr ClassOpcodes kOpcodes[] = {
    {integer,
     " and or xor not cnot lop3 shl shr shf bfe bfi prmt sad mul24 mad24 dp4a dp2a rem addc"
     " subc madc "},
    {comparison, " set setp selp slct min max testp isspacep "},
    {bit_count, " popc clz brev bfind fns "},
    {conversion, " cvt "},
    {special, " rcp sqrt rsqrt ex2 lg2 sin cos tanh "},
    {tensor, " mma "},
    {load_store, " ldu st atom red ldmatrix stmatrix prefetch prefetchu "},
    {warp, " shfl vote match redux activemask elect "},
    {synchronization, " bar barrier membar fence mbarrier griddepcontrol setmaxnreg nanosleep "},
    {control, " bra brx ret exit call trap "},
    {move, " mov cvta mapa getctarank "},
};

struct Throughput {
  unsigned of_7_5 = 0, of_8_0 = 0, of_8_6 = 0, of_9_0 = 0;  ///< 8.9 has that of 8.6
};

/// In the order of InstructionClass.
constexpr std::array<Throughput, kInstructionClasses> kThroughputs = {{
    {64, 64, 128, 128},  // fp32: add, multiply, multiply-add
    {2, 32, 2, 64},      // fp64
    {64, 128, 64, 128},  // fp16: 128 or 256 results, two of each lane
    {64, 64, 64, 64},    // integer: add, multiply, multiply-add, shift, logic
    {64, 64, 64, 64},    // comparison, minimum, maximum
    {16, 16, 16, 16},    // population count, leading zeros, reversal
    {64, 128, 64, 128},  // conversion: f16 to f32; 64 of integers with 8 and 16 bits, 16 for others
    {16, 16, 16, 16},    // special: reciprocal, root, exponential, logarithm, sine
    {0, 0, 0, 0},        // tensor: by its operations
    {16, 32, 32, 32},    // load, store
    {64, 64, 64, 64},    // warp: vote; 32 for shuffles
    {0, 0, 0, 0},
    {0, 0, 0, 0},
    {0, 0, 0, 0},
    {0, 0, 0, 0},
}};

bool has_type(const ptx::Instruction& instruction, std::string_view a, std::string_view b) {
  return instruction.has(a) || instruction.has(b);
}

/// add, sub, mul, mad, fma, neg, abs, copysign, div: by their type.
InstructionClass class_of_arithmetic(const ptx::Instruction& instruction) {
  const bool divides = instruction.words.front() == "div";
  if (instruction.has("f32")) return divides ? special : fp32;
  if (instruction.has("f32x2")) return fp32;
  if (instruction.has("f64")) return fp64;
  if (has_type(instruction, "f16", "f16x2") || has_type(instruction, "bf16", "bf16x2")) return fp16;
  return integer;
}

/// The numbers of m16n8k16; 0 for other words.
std::array<std::uint64_t, 3> shape_of(std::string_view word) {
  std::array<std::uint64_t, 3> shape{};
  const char* at = word.data();
  const char* const end = at + word.size();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (at == end || *at != "mnk"[i]) return {};
    const auto [rest, error] = std::from_chars(at + 1, end, shape[i]);
    if (error != std::errc()) return {};
    at = rest;
  }
  return shape;
}

}  // namespace

InstructionClass class_of(const ptx::Instruction& instruction) {
  const std::string_view opcode = instruction.words.front();
  const std::string between_blanks = ' ' + std::string(opcode) + ' ';
  for (const auto& [own, names] : kOpcodes)
    if (names.find(between_blanks) != names.npos) return own;
  for (const std::string_view arithmetic : {"add", "sub", "mul", "mad", "fma", "neg", "abs", "copysign", "div"})
    if (opcode == arithmetic) return class_of_arithmetic(instruction);
  if (opcode == "ld") return has_type(instruction, "param", "param::entry") ? move : load_store;
  if (opcode == "wmma") return instruction.has("mma") ? tensor : load_store;
  if (opcode == "wgmma") return instruction.has("mma_async") ? tensor : synchronization;
  if (opcode == "cp")
    return has_type(instruction, "commit_group", "wait_group") || instruction.has("wait_all") ? synchronization
                                                                                              : load_store;
  return other;
}

unsigned lanes_per_cycle(InstructionClass instruction, const Card& card) {
  const Throughput& found = kThroughputs[static_cast<std::size_t>(instruction)];
  switch (card.compute_capability()) {
    case 75: return found.of_7_5;
    case 80: return found.of_8_0;
    case 86:
    case 89: return found.of_8_6;
    default: return found.of_9_0;
  }
}

std::uint64_t tensor_flops(const ptx::Instruction& instruction) {
  if (class_of(instruction) != tensor) return 0;
  constexpr std::uint64_t kWarpsOfWarpgroup = 4;
  for (const std::string_view word : instruction.words)
    if (const auto [m, n, k] = shape_of(word); m > 0)
      return 2 * m * n * k / (instruction.words.front() == "wgmma" ? kWarpsOfWarpgroup : 1);
  return 0;
}

bool is_block_barrier(const ptx::Instruction& instruction) {
  const std::string_view opcode = instruction.words.front();
  return (opcode == "bar" || opcode == "barrier") && !instruction.has("warp");
}

}  // namespace gradring::simulated_gpu
