// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/ptx/machine_code.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/simulated_gpu/ptx/error.h"
#include "kernels/simulated_gpu/ptx/machine_instructions.h"

namespace gradring::ptx {
namespace {

constexpr std::uint16_t kCudaMachine = 190;  ///< EM_CUDA
constexpr std::string_view kInfo = ".nv.info", kText = ".text.", kShared = ".nv.shared.";
constexpr std::string_view kLines = ".nv_debug_line_sass";
/// Code for sm_90 and later counts the first bytes of shared memory, which are CUDA's own, in .nv.shared, and has this
/// section.
constexpr std::string_view kReserved = ".nv.shared.reserved.0";
constexpr std::size_t kReservedSharedBytes = 1024;

/// Attributes of .nv.info: a form, a kind, and two bytes that are the value or the size of what follows.
constexpr std::uint8_t kSized = 4;
enum Kind : std::uint8_t { kRegisterCount = 0x2f, kStackSize = 0x12, kSpills = 0x55 };

struct Section {
  std::string_view name;
  const Elf64_Shdr* header = nullptr;
  std::span<const std::byte> bytes;  ///< none of .nv.shared, which is no part of the file
};

template <class Value>
Value value_at(std::span<const std::byte> bytes, std::size_t offset) {
  check<PtxError>(offset <= bytes.size() && sizeof(Value) <= bytes.size() - offset, "machine code ends within a value");
  Value made;
  std::memcpy(&made, bytes.data() + offset, sizeof made);
  return made;
}

std::span<const std::byte> part(std::span<const std::byte> bytes, std::uint64_t offset, std::uint64_t size) {
  check<PtxError>(offset <= bytes.size() && size <= bytes.size() - offset, "a section of machine code ends behind it");
  return bytes.subspan(offset, size);
}

std::string_view text_at(std::span<const std::byte> strings, std::size_t offset) {
  check<PtxError>(offset < strings.size(), "a name in machine code is outside of its table");
  const auto rest = strings.subspan(offset);
  const auto* const begin = reinterpret_cast<const char*>(rest.data());
  const auto* const end = static_cast<const char*>(std::memchr(begin, 0, rest.size()));
  check<PtxError>(end != nullptr, "a name in machine code does not end");
  return {begin, end};
}

class Cubin {
 public:
  explicit Cubin(std::span<const std::byte> elf) {
    const auto header = value_at<Elf64_Ehdr>(elf, 0);
    check<PtxError>(std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
                        header.e_machine == kCudaMachine && header.e_shentsize == sizeof(Elf64_Shdr),
                    "what should be machine code is no ELF file for a GPU");
    constexpr unsigned char kOfCuda13 = 8;  // whose flags have the capability in the second byte
    compute_capability_ = header.e_flags >> (header.e_ident[EI_ABIVERSION] >= kOfCuda13 ? 8 : 0) & 0xff;
    for (std::size_t i = 0; i < header.e_shnum; ++i)
      headers_.push_back(value_at<Elf64_Shdr>(elf, header.e_shoff + i * sizeof(Elf64_Shdr)));
    check<PtxError>(header.e_shstrndx < headers_.size(), "machine code has no names of sections");
    const auto names = bytes_of(elf, headers_[header.e_shstrndx]);
    for (const Elf64_Shdr& section : headers_)
      sections_.push_back({text_at(names, section.sh_name), &section, bytes_of(elf, section)});
    for (const Section& section : sections_)
      if (section.header->sh_type == SHT_SYMTAB) {
        check<PtxError>(section.header->sh_link < sections_.size(), "symbols of machine code have no names");
        read_symbols(section.bytes, sections_[section.header->sh_link].bytes);
      }
  }

  /// 90
  unsigned compute_capability() const { return compute_capability_; }
  const std::vector<Section>& sections() const { return sections_; }
  const Section* find(const std::string& name) const {
    const auto found = std::ranges::find(sections_, name, &Section::name);
    return found == sections_.end() ? nullptr : &*found;
  }
  std::string_view symbol(std::size_t index) const { return symbol_at(index).name; }
  /// The section that has the symbol; null if none has.
  const Section* section_of_symbol(std::size_t index) const {
    const std::size_t section = symbol_at(index).section;
    return section < sections_.size() ? &sections_[section] : nullptr;
  }

 private:
  static std::span<const std::byte> bytes_of(std::span<const std::byte> elf, const Elf64_Shdr& section) {
    if (section.sh_type == SHT_NOBITS) return {};
    return part(elf, section.sh_offset, section.sh_size);
  }
  void read_symbols(std::span<const std::byte> table, std::span<const std::byte> names) {
    for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= table.size(); at += sizeof(Elf64_Sym))
      symbols_.push_back(
          {text_at(names, value_at<Elf64_Sym>(table, at).st_name), value_at<Elf64_Sym>(table, at).st_shndx});
  }
  struct Symbol {
    std::string_view name;
    std::size_t section = 0;
  };
  const Symbol& symbol_at(std::size_t index) const {
    check<PtxError>(index < symbols_.size(), "machine code names a symbol that it does not have");
    return symbols_[index];
  }

  unsigned compute_capability_ = 0;
  std::vector<Elf64_Shdr> headers_;
  std::vector<Section> sections_;
  std::vector<Symbol> symbols_;
};

/// Calls take(kind, payload) for each attribute that has a payload.
template <class Take>
void each_attribute(std::span<const std::byte> bytes, const Take& take) {
  for (std::size_t at = 0; at < bytes.size();) {
    const auto form = value_at<std::uint8_t>(bytes, at);
    const auto kind = value_at<std::uint8_t>(bytes, at + 1);
    const auto value = value_at<std::uint16_t>(bytes, at + 2);
    at += 4;
    if (form != kSized) continue;
    take(kind, part(bytes, at, value));
    at += value;
  }
}

/// Adds the bytes that the instruction at `offset` stores to local memory, or loads from there. Instructions have 128
/// bits: the opcode is in the lowest 12, the width of an access in bits 73 to 75.
void add_spill(CompiledKernel& kernel, std::span<const std::byte> code, std::size_t offset) {
  constexpr std::uint64_t kStoreLocal = 0x387, kLoadLocal = 0x983;
  const std::uint64_t opcode = value_at<std::uint64_t>(code, offset) & 0xfff;
  const std::uint64_t width = value_at<std::uint64_t>(code, offset + 8) >> 9 & 7;  // 4: 32 bits, 5: 64, 6: 128
  const std::size_t bytes = width < 4 ? 4 : std::size_t{4} << (width - 4);
  if (opcode == kStoreLocal) kernel.spill_store_bytes += bytes;
  if (opcode == kLoadLocal) kernel.spill_load_bytes += bytes;
}

/// .nv.info.<kernel>
void read_own_info(CompiledKernel& kernel, std::span<const std::byte> info, std::span<const std::byte> code) {
  each_attribute(info, [&](std::uint8_t kind, std::span<const std::byte> payload) {
    if (kind != kSpills) return;
    for (std::size_t at = 0; at + 8 <= payload.size(); at += 8)  // a reason, which is 1, and an offset
      if (value_at<std::uint32_t>(payload, at) == 1) add_spill(kernel, code, value_at<std::uint32_t>(payload, at + 4));
  });
}

/// Gives the instructions of all kernels the lines of their PTX.
void read_lines(std::map<std::string, CompiledKernel>& kernels, const Cubin& cubin) {
  const Section* const lines = cubin.find(std::string(kLines));
  if (lines == nullptr) return;
  std::map<std::size_t, std::vector<MachineInstruction>*> code;  // by the sequence of its rows
  const auto add = [&](const Elf64_Rel& relocation) {
    const Section* const text = cubin.section_of_symbol(ELF64_R_SYM(relocation.r_info));
    if (text == nullptr || !text->name.starts_with(kText)) return;
    if (const auto found = kernels.find(std::string(text->name.substr(kText.size()))); found != kernels.end())
      code[relocation.r_offset] = &found->second.instructions;
  };
  // Code for sm_90 has relocations with an addend, which is 0.
  for (const auto& [kind, bytes] : {std::pair(".rel", sizeof(Elf64_Rel)), std::pair(".rela", sizeof(Elf64_Rela))})
    if (const Section* const begins = cubin.find(joined(kind, kLines)))
      for (std::size_t at = 0; at + bytes <= begins->bytes.size(); at += bytes)
        add(value_at<Elf64_Rel>(begins->bytes, at));
  const std::vector<LineRow> rows = read_line_program(lines->bytes);
  for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
    const auto found = code.find(rows[i].sequence);
    if (rows[i].line == 0 || found == code.end()) continue;
    const std::size_t end = std::min(rows[i + 1].address / kMachineInstructionBytes, found->second->size());
    for (std::size_t k = rows[i].address / kMachineInstructionBytes; k < end; ++k)
      (*found->second)[k].ptx_line = rows[i].line;
  }
}

}  // namespace

std::map<std::string, CompiledKernel> compiled_kernels(std::span<const std::byte> elf) {
  const Cubin cubin(elf);
  const std::size_t reserved = cubin.find(std::string(kReserved)) != nullptr ? kReservedSharedBytes : 0;
  std::map<std::string, CompiledKernel> kernels;
  for (const Section& section : cubin.sections()) {
    if (!section.name.starts_with(kText)) continue;
    const std::string name(section.name.substr(kText.size()));
    CompiledKernel& kernel = kernels[name];
    kernel.instructions = machine_instructions(section.bytes, cubin.compute_capability());
    if (const Section* info = cubin.find(joined(kInfo, ".", name))) read_own_info(kernel, info->bytes, section.bytes);
    if (const Section* shared = cubin.find(joined(kShared, name)); shared != nullptr)
      kernel.static_shared_bytes = std::max<std::size_t>(shared->header->sh_size, reserved) - reserved;
  }
  if (const Section* info = cubin.find(std::string(kInfo)))
    each_attribute(info->bytes, [&](std::uint8_t kind, std::span<const std::byte> payload) {
      if (kind != kRegisterCount && kind != kStackSize) return;
      const auto kernel = kernels.find(std::string(cubin.symbol(value_at<std::uint32_t>(payload, 0))));
      if (kernel == kernels.end()) return;  // a function that kernels call
      const auto value = value_at<std::uint32_t>(payload, 4);
      if (kind == kRegisterCount)
        kernel->second.registers = static_cast<int>(value);
      else
        kernel->second.stack_bytes = value;
    });
  read_lines(kernels, cubin);
  return kernels;
}

}  // namespace gradring::ptx
