// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/cudart/host_stack.h"

#include <dlfcn.h>
#include <elf.h>
#include <unwind.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "kernels/simt/engine/kernel_name.h"
#include "kernels/simulated_gpu/ptx/error.h"

namespace gradring::simulated_gpu {
namespace {

/// The functions of an ELF file, also those that it does not export.
class Functions {
 public:
  explicit Functions(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    const auto* const header = at<Elf64_Ehdr>(0);
    if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return;
    is_relocatable_ = header->e_type == ET_DYN;
    for (unsigned i = 0; i < header->e_shnum; ++i)
      if (const auto* const section = at<Elf64_Shdr>(header->e_shoff + i * sizeof(Elf64_Shdr)))
        if (section->sh_type == SHT_SYMTAB || section->sh_type == SHT_DYNSYM) add(*header, *section);
  }

  struct Found {
    std::string_view name;  ///< mangled; empty: not known
    std::uint64_t offset = 0;
  };
  Found at_address(std::uint64_t address, std::uint64_t base) const {
    const std::uint64_t value = is_relocatable_ ? address - base : address;
    const auto next = by_address_.upper_bound(value);
    if (next == by_address_.begin()) return {};
    const auto& [begin, function] = *std::prev(next);
    if (value - begin >= function.bytes) return {};
    return {function.name, value - begin};
  }

 private:
  struct Function {
    std::string_view name;
    std::uint64_t bytes = 0;
  };

  template <class T>
  const T* at(std::uint64_t offset) const {
    return offset <= bytes_.size() && sizeof(T) <= bytes_.size() - offset
               ? reinterpret_cast<const T*>(bytes_.data() + offset)
               : nullptr;
  }

  void add(const Elf64_Ehdr& header, const Elf64_Shdr& section) {
    const auto* const strings = at<Elf64_Shdr>(header.e_shoff + section.sh_link * sizeof(Elf64_Shdr));
    if (strings == nullptr) return;
    for (std::uint64_t offset = 0; offset + sizeof(Elf64_Sym) <= section.sh_size; offset += sizeof(Elf64_Sym)) {
      const auto* const symbol = at<Elf64_Sym>(section.sh_offset + offset);
      if (symbol == nullptr) return;
      if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_value == 0) continue;
      const char* const name = at<char>(strings->sh_offset + symbol->st_name);
      if (name != nullptr) by_address_[symbol->st_value] = {name, symbol->st_size};
    }
  }

  std::string bytes_;
  bool is_relocatable_ = false;
  std::map<std::uint64_t, Function> by_address_;
};

const Functions& functions_of(const std::string& path) {
  static std::mutex mutex;
  static auto* const files = new std::map<std::string, Functions>;
  const std::lock_guard lock(mutex);
  return files->try_emplace(path, path).first->second;
}

bool is_of_this_library(const Dl_info& frame) {
  static const void* const own = [] {
    Dl_info info{};
    return ::dladdr(reinterpret_cast<void*>(&is_of_this_library), &info) != 0 ? info.dli_fbase : nullptr;
  }();
  return frame.dli_fbase == own;
}

bool is_stub(std::string_view name) {
  return name.find("__device_stub__") != name.npos || name.find("cudaLaunchKernel") != name.npos;
}

}  // namespace

/// A walk over a thread's stack, and the words of the stack that hold its return addresses.
struct HostStack::Walk {
  HostStack stack;
  std::array<void* const*, kMostFrames> words{};
  bool skip_next = true;   ///< the next frame is here() itself
  bool can_repeat = true;  ///< each return address was found in its word

  /// Whether a walk that begins at the word `first` finds the same. A function whose frame varies in size (alloca) may
  /// leave the word of an earlier call where it was: the walk is then taken for that of the earlier call.
  bool is_still_there(void* const* first) const {
    return can_repeat && words[0] == first &&
           std::equal(words.begin(), words.begin() + stack.count_, stack.frames_.begin(),
                      [](void* const* word, void* frame) { return *word == frame; });
  }
  static _Unwind_Reason_Code add(_Unwind_Context* context, void* to) {
    Walk& walk = *static_cast<Walk*>(to);
    const auto frame = reinterpret_cast<void*>(_Unwind_GetIP(context));
    const auto word = reinterpret_cast<void* const*>(_Unwind_GetCFA(context)) - 1;
    if (std::exchange(walk.skip_next, false)) return _URC_NO_REASON;
    if (frame == nullptr || walk.stack.count_ == kMostFrames) return _URC_END_OF_STACK;
    const auto index = static_cast<std::size_t>(walk.stack.count_++);
    walk.can_repeat &= *word == frame;
    walk.words[index] = word;
    walk.stack.frames_[index] = frame;
    return _URC_NO_REASON;
  }
};

/// A loop launches kernels from the same places again and again, so the latest walks are cached: unwinding is a large part
/// of the cost of a small launch.
[[gnu::noinline]] HostStack HostStack::here() {
  static constexpr std::size_t kCachedWalks = 8;
  static thread_local std::array<Walk, kCachedWalks> walks;
  static thread_local std::size_t next = 0;
  auto* const own = static_cast<void* const*>(__builtin_dwarf_cfa()) - 1;
  for (const Walk& walk : walks)
    if (walk.is_still_there(own)) return walk.stack;
  Walk& walk = walks[next++ % kCachedWalks];
  walk = {};
  _Unwind_Backtrace(&Walk::add, &walk);
  return walk.stack;
}

std::vector<std::string> HostStack::texts() const {
  std::vector<std::string> made;
  for (int i = 0; i < count_; ++i) {
    const auto address = reinterpret_cast<std::uint64_t>(frames_[i]) - 1;  // in the call, not behind it
    Dl_info frame{};
    if (::dladdr(reinterpret_cast<void*>(address), &frame) == 0 || frame.dli_fname == nullptr) continue;
    if (is_of_this_library(frame)) continue;
    const std::string path = frame.dli_fname;
    const auto base = reinterpret_cast<std::uint64_t>(frame.dli_fbase);
    const Functions::Found found = functions_of(path).at_address(address, base);
    if (is_stub(found.name)) continue;
    if (found.name.empty())
      made.push_back(path + "+" + hexadecimal(address - base));
    else
      made.push_back(simt::demangled(std::string(found.name).c_str()) + "+" + hexadecimal(found.offset) + " in " +
                     path);
    if (found.name == "main") break;
    if (path.find("/libc.so") != path.npos) {  // what called main, or began the thread
      made.pop_back();
      break;
    }
  }
  return made;
}

}  // namespace gradring::simulated_gpu
