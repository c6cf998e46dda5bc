// SPDX-License-Identifier: Apache-2.0
// Translation of a kernel: machine/launch.h. Its launch is in machine/grid.cpp.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/decoder.h"
#include "kernels/simulated_gpu/machine/fault_report.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"
#include "kernels/simulated_gpu/units/fault.h"

namespace gradring::simulated_gpu {
namespace {

Operation translate(FrameLayout& frame, const ptx::Instruction& instruction) {
  Operation operation;
  operation.guard = frame.of_true();
  if (instruction.guard) {
    operation.guard = frame.of_register(instruction.guard->reg);
    operation.guard_flip = instruction.guard->negated ? kAllLanes : 0;
  }
  const Translator translator = translator_of(instruction);
  if (translator == nullptr) throw Unsupported("the instruction is not known");
  Decoder decoder(frame, instruction);
  translator(decoder, operation);
  return operation;
}

/// The handler of operations that access rows of wgmma.
void touch_and_execute(const Operation& operation, Warp& warp, Mask active) {
  Block& block = warp.block();
  block.warpgroups().touch(operation, warp, active);
  block.program().handlers[block.program().position_of(operation)](operation, warp, active);
}

void watch_warpgroup_rows(Program& program) {
  if (program.warpgroup_rows.empty()) return;
  for (Operation& operation : program.operations) {
    program.handlers.push_back(operation.execute);
    const auto is_watched = [&](Slot slot) { return program.warpgroup_rows.contains(slot); };
    const bool accesses = is_watched(operation.d) || is_watched(operation.a) || is_watched(operation.b) ||
                          is_watched(operation.c) ||
                          std::any_of(operation.slots, operation.slots + operation.slot_count, is_watched);
    if (accesses && !is_wgmma(operation)) operation.execute = &touch_and_execute;
  }
}

/// Instructions of one spelling that cannot be translated.
struct Rejected {
  std::string reason;
  std::string_view opcode;
  std::size_t first = 0;  ///< position
  std::size_t count = 0;
};

void add(std::vector<Rejected>& rejected, const std::string& reason, std::string_view opcode, std::size_t position) {
  for (Rejected& known : rejected)
    if (known.opcode == opcode && known.reason == reason) {
      ++known.count;
      return;
    }
  rejected.push_back({reason, opcode, position, 1});
}

std::string described(const Program& program, const std::vector<Rejected>& rejected) {
  std::string text;
  for (const Rejected& one : rejected)
    text += "\n   " + one.reason + ": " + describe_instruction(program, one.first) +
            (one.count == 1 ? "" : " (" + std::to_string(one.count) + " times " + std::string(one.opcode) + ")");
  return text;
}

}  // namespace

Executable::Executable(const ptx::Module& module, const ptx::Kernel& kernel) : program_(std::make_unique<Program>()) {
  Program& program = *program_;
  program.module = &module;
  program.kernel = &kernel;
  FrameLayout frame(program);
  program.always = frame.of_true();
  std::vector<Rejected> rejected;
  const auto begin_code_at = [&](std::size_t position) {
    if (position == kernel.entry) frame.begin_code_of(nullptr);
    for (const ptx::Function& function : kernel.functions)
      if (function.is_defined && function.begin == position) frame.begin_code_of(&function);
  };
  for (std::size_t i = 0; i < kernel.code.size(); ++i) try {
      begin_code_at(i);
      program.operations.push_back(translate(frame, kernel.code[i]));
    } catch (const Unsupported& reason) {
      add(rejected, reason.what(), kernel.code[i].opcode, i);
    }
  if (!rejected.empty())
    throw Fault("the simulated GPU cannot execute " + kernel_label(kernel) + ":" + described(program, rejected));
  program.operations.push_back(end_of_kernel(frame));
  watch_warpgroup_rows(program);
}

Executable::~Executable() = default;

const ptx::Kernel& Executable::kernel() const { return *program_->kernel; }

CodeLocation Executable::location_of(std::size_t position) const {
  return simulated_gpu::location_of(*program_, position);
}

Counters& Counters::operator+=(const Counters& other) {
  blocks += other.blocks;
  warps += other.warps;
  instructions.resize(std::max(instructions.size(), other.instructions.size()));
  for (std::size_t i = 0; i < other.instructions.size(); ++i) {
    for (const auto count : {&Instruction::executions, &Instruction::lanes, &Instruction::requests, &Instruction::bytes,
                             &Instruction::sectors, &Instruction::least_sectors, &Instruction::shared_requests,
                             &Instruction::wavefronts, &Instruction::least_wavefronts})
      instructions[i].*count += other.instructions[i].*count;
  }
  by_multiprocessor.resize(std::max(by_multiprocessor.size(), other.by_multiprocessor.size()));
  for (std::size_t i = 0; i < other.by_multiprocessor.size(); ++i) {
    std::vector<std::uint64_t>& sums = by_multiprocessor[i];
    const std::vector<std::uint64_t>& added = other.by_multiprocessor[i];
    sums.resize(std::max(sums.size(), added.size()));
    for (std::size_t k = 0; k < added.size(); ++k) sums[k] += added[k];
  }
  read_sectors.add(other.read_sectors);
  written_sectors.add(other.written_sectors);
  return *this;
}

}  // namespace gradring::simulated_gpu
