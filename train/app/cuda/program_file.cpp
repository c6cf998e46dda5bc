// SPDX-License-Identifier: Apache-2.0
#include "train/app/cuda/cuda_program.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string_view>

#include "kernels/base/file.h"

namespace gradring::train {
namespace {

constexpr std::string_view kRegister = "__cudaRegisterFatBinary";  ///< of the runtime; nvcc's host code calls it
constexpr std::string_view kDeviceCode = ".nvFatBinSegment";       ///< the section of wrappers of fat binaries
constexpr std::uint64_t kMostTableBytes = std::uint64_t{1} << 30;

class ElfFile {
 public:
  explicit ElfFile(const std::filesystem::path& file) : stream_(file, std::ios::binary) {
    if (!stream_) throw ReadError("cannot be opened");
  }

  /// Whether it is a file of this kind of machine; read before all else.
  bool read_header() {
    stream_.read(reinterpret_cast<char*>(&header_), sizeof header_);
    constexpr unsigned char kIdent[] = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB};
    return stream_ && std::equal(std::begin(kIdent), std::end(kIdent), header_.e_ident);
  }

  std::vector<Elf64_Shdr> sections() {
    if (header_.e_shoff == 0) return {};
    if (header_.e_shentsize != sizeof(Elf64_Shdr)) throw ReadError("is a damaged ELF file");
    return read_table<Elf64_Shdr>(header_.e_shoff, std::uint64_t{header_.e_shnum} * sizeof(Elf64_Shdr));
  }

  std::string section_names(const std::vector<Elf64_Shdr>& sections) {
    return header_.e_shstrndx < sections.size() ? text_of(sections[header_.e_shstrndx]) : std::string();
  }

  std::string text_of(const Elf64_Shdr& section) {
    const auto bytes = read_table<char>(section.sh_offset, section.sh_size);
    return {bytes.begin(), bytes.end()};
  }

  template <class Entry>
  std::vector<Entry> entries_of(const Elf64_Shdr& section) {
    return read_table<Entry>(section.sh_offset, section.sh_size);
  }

 private:
  template <class Entry>
  std::vector<Entry> read_table(std::uint64_t offset, std::uint64_t bytes) {
    if (bytes > kMostTableBytes) throw ReadError("is a damaged ELF file");
    std::vector<Entry> entries(bytes / sizeof(Entry));
    stream_.seekg(static_cast<std::streamoff>(offset));
    stream_.read(reinterpret_cast<char*>(entries.data()), static_cast<std::streamsize>(entries.size() * sizeof(Entry)));
    if (!stream_) throw ReadError("is an ELF file that is cut short");
    return entries;
  }

  std::ifstream stream_;
  Elf64_Ehdr header_{};
};

/// The C string at `offset` of a string table; empty outside of it.
std::string_view at(const std::string& strings, std::uint64_t offset) {
  if (offset >= strings.size()) return {};
  return std::string_view(strings).substr(offset, strings.find('\0', offset) - offset);
}

class Reader {
 public:
  explicit Reader(ElfFile& elf) : elf_(elf), sections_(elf.sections()), names_(elf.section_names(sections_)) {}

  ProgramFile read() {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type == SHT_DYNAMIC) read_dynamic(section);
      if (section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM) read_symbols(section);
      has_device_code_ |= at(names_, section.sh_name) == kDeviceCode;
    }
    program_.is_elf = true;
    program_.has_static_runtime = defines_register_ || (has_device_code_ && !imports_register_);
    return std::move(program_);
  }

 private:
  std::string strings_of(const Elf64_Shdr& section) {
    return section.sh_link < sections_.size() ? elf_.text_of(sections_[section.sh_link]) : std::string();
  }

  void read_dynamic(const Elf64_Shdr& section) {
    const std::string strings = strings_of(section);
    bool has_runpath = false;
    for (const Elf64_Dyn& entry : elf_.entries_of<Elf64_Dyn>(section)) {
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_NEEDED) program_.needed.emplace_back(at(strings, entry.d_un.d_val));
      if (entry.d_tag == DT_RPATH) program_.rpath = at(strings, entry.d_un.d_val);
      has_runpath |= entry.d_tag == DT_RUNPATH;
    }
    if (has_runpath) program_.rpath.clear();
  }

  void read_symbols(const Elf64_Shdr& section) {
    const std::string strings = strings_of(section);
    for (const Elf64_Sym& symbol : elf_.entries_of<Elf64_Sym>(section)) {
      if (at(strings, symbol.st_name) != kRegister) continue;
      (symbol.st_shndx == SHN_UNDEF ? imports_register_ : defines_register_) = true;
    }
  }

  ElfFile& elf_;
  std::vector<Elf64_Shdr> sections_;
  std::string names_;
  ProgramFile program_;
  bool has_device_code_ = false, imports_register_ = false, defines_register_ = false;
};

}  // namespace

ProgramFile read_program(const std::filesystem::path& file) {
  ElfFile elf(file);
  if (!elf.read_header()) return {};
  return Reader(elf).read();
}

}  // namespace gradring::train
