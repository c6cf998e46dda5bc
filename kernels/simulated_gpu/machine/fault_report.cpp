// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/fault_report.h"

#include "kernels/simt/kernel_name.h"
#include "kernels/simulated_gpu/fault.h"
#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/warp.h"

namespace gradring::simulated_gpu {
namespace {

std::string text_of(const Extent& at) {
  return "(" + std::to_string(at.x) + ", " + std::to_string(at.y) + ", " + std::to_string(at.z) + ")";
}

std::string line_of(const Program& program, const ptx::Source& source) {
  if (source.line == 0 || program.module == nullptr || source.file >= program.module->files().size()) return "";
  return std::string(program.module->files()[source.file]) + ":" + std::to_string(source.line);
}

/// "kernels/lib/rows.h:20, called from kernels/bias/1_rows.cu:31"; empty if nvcc was not asked for lines.
std::string source_line(const Program& program, std::size_t position) {
  if (position >= program.kernel->code.size()) return "";
  const ptx::Instruction& instruction = program.kernel->code[position];
  const std::string line = line_of(program, instruction.source);
  const std::string caller = line_of(program, instruction.called_from);
  return caller.empty() || caller == line ? line : line + ", called from " + caller;
}

std::string instruction_text(const Program& program, std::size_t position) {
  return position < program.kernel->code.size() ? std::string(program.kernel->code[position].text)
                                                : "the end of the kernel";
}

}  // namespace

std::string kernel_label(const ptx::Kernel& kernel) {
  return simt::short_name_of(simt::demangled(std::string(kernel.name).c_str()));
}

std::string describe_instruction(const Program& program, std::size_t position) {
  const std::string line = source_line(program, position);
  return (line.empty() ? "" : line + ": ") + instruction_text(program, position);
}

std::string describe_thread_of_block(const Warp& warp, unsigned thread) {
  const Extent& shape = warp.block().launch().block;
  return "thread " + text_of({thread % shape.x, thread / shape.x % shape.y, thread / (shape.x * shape.y)});
}

std::string describe_thread(const Warp& warp, unsigned lane) {
  return "thread " + text_of(warp.thread(lane)) + " of block " + text_of(warp.block().index());
}

void report_fault(const Warp& warp, std::size_t position, unsigned lane, const std::string& what) {
  const Program& program = warp.block().program();
  const std::string line = source_line(program, position);
  throw Fault(what + ", by " + describe_thread(warp, lane) + "\n   in " + kernel_label(*program.kernel) +
              (line.empty() ? "" : ", " + line) + "\n   " + instruction_text(program, position));
}

}  // namespace gradring::simulated_gpu
