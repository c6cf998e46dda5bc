// SPDX-License-Identifier: Apache-2.0
#include "train/bench/annotated_source.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string_view>

#include "kernels/base/child_process.h"
#include "kernels/base/file.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train::bench {
namespace {

using simulated_gpu::KernelListing;
using simulated_gpu::LaunchCounts;
using simulated_gpu::ListedInstruction;

/// What is shown of a line, or of an instruction.
struct Counts {
  double warp_instructions = 0, machine = 0, sectors = 0, excess_sectors = 0, wavefronts = 0, excess_wavefronts = 0;

  Counts& operator+=(const ListedInstruction& more) {
    warp_instructions += static_cast<double>(more.warp_instructions);
    for (const auto& [offset, executions] : more.machine) machine += executions;
    sectors += static_cast<double>(more.sectors);
    excess_sectors += static_cast<double>(more.sectors) - static_cast<double>(more.least_sectors);
    wavefronts += static_cast<double>(more.wavefronts);
    excess_wavefronts += static_cast<double>(more.wavefronts) - static_cast<double>(more.least_wavefronts);
    return *this;
  }
  /// Columns; blank where there is nothing.
  std::string text() const {
    std::string all;
    for (const double count : {warp_instructions, machine, sectors, excess_sectors, wavefronts, excess_wavefronts})
      all += fmt::format("{:>10} ", count == 0 ? "" : fmt::format("{:.0f}", count));
    return all;
  }
};

constexpr const char* kHead =
    "     instr.    machine    sectors     excess  wavefront     excess\n"
    "   of warps   instr. *                                          \n";
constexpr const char* kFoot =
    "\ninstr. of warps: of PTX. excess: beyond the least for the same bytes, or without bank conflicts.\n"
    "* estimated from the machine code (docs/counters.md).\n";

/// An instruction of a line, and the kernel that it is of.
struct Occurrence {
  const std::string* kernel = nullptr;  ///< mangled
  const ListedInstruction* instruction = nullptr;
};
using Lines = std::map<unsigned, std::vector<Occurrence>>;

std::string path_of_descriptor(const UniqueFd& file) { return fmt::format("/proc/{}/fd/{}", ::getpid(), file.get()); }

/// What nvdisasm prints of a file with machine code.
std::string disassembled(const std::string& cubin) {
  const UniqueFd file(::memfd_create("cubin", MFD_CLOEXEC));
  if (file.get() < 0 || write_all(file.get(), cubin) != 0)
    throw EnvironmentError("cannot hand machine code to nvdisasm: no memory for a file");
  constexpr auto kTimeout = std::chrono::minutes(2);
  for (const char* program : {"nvdisasm", "/usr/local/cuda/bin/nvdisasm"}) {
    std::string output;
    ChildProcess child({.words = {program, "-c", path_of_descriptor(file)}});
    char bytes[1 << 16];
    while (const std::size_t count = child.read(bytes, Deadline::after(kTimeout))) output.append(bytes, count);
    if (child.wait() && !output.empty()) return output;
  }
  throw EnvironmentError(
      "nvdisasm did not print the machine code: install it (part of CUDA, or pip install nvidia-cuda-nvdisasm) and add "
      "it to PATH, or leave out sass");
}

/// The instructions of kernels by their offset, by kernel.
using Disassembly = std::map<std::string, std::map<std::size_t, std::string>>;

const std::string& instruction_at(const Disassembly& disassembly, const std::string& kernel, std::size_t offset) {
  const auto of_kernel = disassembly.find(kernel);
  if (of_kernel != disassembly.end())
    if (const auto found = of_kernel->second.find(offset); found != of_kernel->second.end()) return found->second;
  throw EnvironmentError(fmt::format(
      "nvdisasm printed no instruction at {:#x} of {}: install that of the CUDA version that compiled it, or leave out "
      "sass",
      offset, kernel));
}

std::string source_line(const std::vector<std::string>& source, unsigned line) {
  return line <= source.size() ? source[line - 1] : "";
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

void add_instructions(std::string& text, const std::vector<Occurrence>& occurrences, const AnnotationSpec& spec,
                      const Disassembly& disassembly) {
  for (const auto& [kernel, instruction] : occurrences) {
    if (spec.ptx) text += fmt::format("{}      |   ptx  {}\n", (Counts() += *instruction).text(), instruction->text);
    if (!spec.sass) continue;
    for (const auto& [offset, executions] : instruction->machine) {
      Counts counts;
      counts.machine = executions;
      text += fmt::format("{}      |   sass {:04x}  {}\n", counts.text(), offset,
                          instruction_at(disassembly, *kernel, offset));
    }
  }
}

}  // namespace

std::map<std::size_t, std::string> disassembly_of(const std::string& kernel, const std::string& nvdisasm_output) {
  std::map<std::size_t, std::string> instructions;
  std::istringstream lines(nvdisasm_output);
  bool is_own = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(".text.")) is_own = line == ".text." + kernel + ":";
    const std::size_t begin = line.find("/*"), end = line.find("*/");
    if (!is_own || begin == line.npos || end == line.npos || line.find_first_not_of(" \t") != begin) continue;
    const std::string offset = line.substr(begin + 2, end - begin - 2);
    if (offset.empty() || offset.find_first_not_of("0123456789abcdef") != offset.npos) continue;
    const std::size_t text = line.find_first_not_of(" \t", end + 2);
    const std::size_t last = line.find_last_not_of(" \t;");
    if (text != line.npos && last >= text)
      instructions[std::stoul(offset, nullptr, 16)] = line.substr(text, last - text + 1);
  }
  return instructions;
}

void AnnotatedSource::add(const LaunchCounts& launch) {
  if (!launch.listing) return;
  Kernel& kernel = kernels_[launch.listing->mangled];
  if (kernel.launches++ == 0) {
    kernel.name = launch.kernel;
    kernel.listing = *launch.listing;
    return;
  }
  for (std::size_t i = 0; i < kernel.listing.instructions.size(); ++i) {
    ListedInstruction& sum = kernel.listing.instructions[i];
    const ListedInstruction& more = launch.listing->instructions[i];
    for (const auto count :
         {&ListedInstruction::warp_instructions, &ListedInstruction::sectors, &ListedInstruction::least_sectors,
          &ListedInstruction::wavefronts, &ListedInstruction::least_wavefronts})
      sum.*count += more.*count;
    std::map<std::size_t, double> machine(sum.machine.begin(), sum.machine.end());
    for (const auto& [offset, executions] : more.machine) machine[offset] += executions;
    sum.machine.assign(machine.begin(), machine.end());
  }
}

std::string AnnotatedSource::text() const {
  std::map<std::string, Lines> files;
  Disassembly disassembly;
  std::map<std::string, std::string> outputs;  // of nvdisasm, by machine code: many kernels share a file
  std::string text;
  for (const auto& [mangled, kernel] : kernels_) {
    text += fmt::format("{}: {} launch{}\n", kernel.name, kernel.launches, kernel.launches == 1 ? "" : "es");
    if (const std::string& cubin = kernel.listing.cubin; spec_.sass && !cubin.empty()) {
      const auto [output, is_new] = outputs.try_emplace(cubin);
      if (is_new) output->second = disassembled(cubin);
      disassembly[mangled] = disassembly_of(mangled, output->second);
    }
    for (const ListedInstruction& instruction : kernel.listing.instructions)
      if (instruction.line > 0) files[instruction.file][instruction.line].push_back({&mangled, &instruction});
  }
  for (const auto& [file, lines] : files) {
    const std::vector<std::string> source = lines_of(spec_.source_root / file);
    text += fmt::format(
        "\n{}{}\n{}", file,
        source.empty() ? ": cannot be read in " + spec_.source_root.string() + ", see --source-root" : "", kHead);
    const unsigned end = std::max<unsigned>(static_cast<unsigned>(source.size()), lines.rbegin()->first);
    for (unsigned line = 1; line <= end; ++line) {
      const auto found = lines.find(line);
      if (found == lines.end() && source.empty()) continue;
      Counts counts;
      if (found != lines.end())
        for (const Occurrence& each : found->second) counts += *each.instruction;
      text += fmt::format("{}{:>5} | {}\n", counts.text(), line, source_line(source, line));
      if (found != lines.end()) add_instructions(text, found->second, spec_, disassembly);
    }
  }
  return text + kFoot;
}

void AnnotatedSource::write() const {
  std::ofstream file(spec_.file);
  file << text();
  if (!file.flush())
    throw EnvironmentError(
        fmt::format("cannot write the annotated source to {}: choose another --annotate", spec_.file.string()));
}

}  // namespace gradring::train::bench
