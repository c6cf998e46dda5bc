// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/fault_report.h"

#include <filesystem>

#include "kernels/simt/engine/kernel_name.h"
#include "kernels/simulated_gpu/machine/block.h"

namespace gradring::simulated_gpu {
namespace {

std::string line_of(const Program& program, const ptx::Source& source) {
  if (source.line == 0 || program.module == nullptr || source.file >= program.module->files().size()) return "";
  return path_in_repository(program.module->files()[source.file]) + ":" + std::to_string(source.line);
}

/// "kernels/lib/rows.h:20, called from kernels/ops/bias/1_rows.cu:31"; empty if nvcc was not asked for lines.
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

FindingLog* findings_of(const Warp& warp) { return warp.block().findings(); }

FindingKey key_of(const Warp& warp, FindingKind kind, std::size_t position) {
  return {.kind = kind, .kernel = warp.block().program().kernel, .position = position};
}

std::size_t position_in(const Warp& warp, const Operation& operation) {
  return warp.block().program().position_of(operation);
}

Finding finding_of_launch(const Program& program, int device, FindingKind kind, std::size_t position,
                          std::string text) {
  const CodeLocation at = location_of(program, position);
  Finding finding{.kind = kind,
                  .severity = severity_of(kind),
                  .device = device,
                  .kernel = at.kernel,
                  .file = at.file,
                  .line = at.line,
                  .instruction = at.instruction,
                  .text = std::move(text)};
  if (position < program.kernel->code.size())
    finding.called_from = line_of(program, program.kernel->code[position].called_from);
  return finding;
}

Finding finding_at(const Warp& warp, FindingKind kind, std::size_t position, unsigned lane, const std::string& what) {
  const Block& block = warp.block();
  Finding finding = finding_of_launch(block.program(), block.launch().device, kind, position,
                                      what + ", by " + describe_location(warp, position, lane));
  finding.thread = extent_at(block.launch().block, warp.thread_index(lane));
  finding.block = block.index();
  return finding;
}

FindingKind kind_of(SharedFinding::Problem problem) {
  switch (problem) {
    case SharedFinding::Problem::not_written: return FindingKind::not_written;
    case SharedFinding::Problem::partly_written: return FindingKind::padding;
    case SharedFinding::Problem::not_fenced: return FindingKind::missing_fence;
    default: return FindingKind::shared_race;
  }
}

void note_shared_finding(const Warp& warp, const Operation& operation, unsigned lane, const SharedFinding& finding,
                         const std::string& bytes, const std::string& verb, FindingKind kind) {
  note_finding(warp, kind, operation, lane, [&] { return describe_finding(warp, finding, bytes, verb); });
}

std::string text_of(const Extent& at) { return joined("(", at.x, ", ", at.y, ", ", at.z, ")"); }

std::string path_in_repository(std::string_view path) {
  std::string plain = std::filesystem::path(path).lexically_normal().string();
  for (const std::string_view folder : {"/tests/kernels/", "/kernels/"})
    if (const std::size_t found = plain.rfind(folder); found != plain.npos) return plain.substr(found + 1);
  return plain;
}

std::string kernel_label(const ptx::Kernel& kernel) {
  return simt::short_name_of(simt::demangled(std::string(kernel.name).c_str()));
}

std::string function_label(const ptx::Function& function) {
  return simt::short_name_of(simt::demangled(std::string(function.name).c_str()));
}

std::string describe_instruction(const Program& program, std::size_t position) {
  const std::string line = source_line(program, position);
  return (line.empty() ? "" : line + ": ") + instruction_text(program, position);
}

CodeLocation location_of(const Program& program, std::size_t position) {
  CodeLocation location{.kernel = kernel_label(*program.kernel),
                        .instruction = instruction_text(program, position),
                        .text = kernel_label(*program.kernel) + ", " + describe_instruction(program, position)};
  if (position >= program.kernel->code.size() || program.module == nullptr) return location;
  const ptx::Source& source = program.kernel->code[position].source;
  if (source.line == 0 || source.file >= program.module->files().size()) return location;
  location.file = path_in_repository(program.module->files()[source.file]);
  location.line = static_cast<unsigned>(source.line);
  return location;
}

std::string describe_thread_of_block(const Warp& warp, unsigned thread) {
  return "thread " + text_of(extent_at(warp.block().launch().block, thread));
}

std::string describe_finding(const Warp& warp, const SharedFinding& finding, const std::string& bytes,
                             const std::string& verb) {
  const Accessor& other = finding.other;
  const std::string by = other.is_thread()                            ? describe_thread_of_block(warp, other.who)
                         : other.warp() == AccessClocks::kCopyEngine  ? "a tensor copy"
                         : other.warp() == AccessClocks::kBulkStores  ? "a bulk copy to global memory"
                         : other.warp() >= AccessClocks::kTensorCores ? "wgmma"
                                                                      : "several threads of a warp";
  switch (finding.problem) {
    case SharedFinding::Problem::not_written: return "shared memory is read before it is written: " + bytes;
    case SharedFinding::Problem::partly_written:
      return "shared memory is read before it is written: " + bytes + ", some of which were written";
    case SharedFinding::Problem::not_fenced:
      return "shared memory is " + verb + " asynchronously without fence.proxy.async after " + by +
             " wrote it: " + bytes;
    default: break;
  }
  const bool after_write = finding.problem == SharedFinding::Problem::unordered_write;
  return "race in shared memory: " + bytes + " are " + verb + ", and were " + (after_write ? "written" : "read") +
         " by " + by + " without a barrier in between";
}

std::string describe_location(const Warp& warp, std::size_t position, unsigned lane) {
  const Program& program = warp.block().program();
  const std::string line = source_line(program, position);
  std::string text = describe_thread_of_block(warp, warp.thread_index(lane)) + " of block " +
                     text_of(warp.block().index()) + "\n   in " + kernel_label(*program.kernel) +
                     (line.empty() ? "" : ", " + line) + "\n   " + instruction_text(program, position);
  for (const std::size_t next : warp.calls().return_positions(lane))
    text += "\n   called from " + describe_instruction(program, next - 1);
  return text;
}

}  // namespace gradring::simulated_gpu
