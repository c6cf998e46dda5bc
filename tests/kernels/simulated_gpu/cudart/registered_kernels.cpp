// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/simulated_gpu/cudart/registered_kernels.h"

#include <deque>

#include "kernels/simulated_gpu/cudart/runtime.h"

extern "C" {
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFatBinaryEnd(void** binary);
void __cudaRegisterFunction(void** binary, const char* host, char* device, const char* name, int threads, uint3* tid,
                            uint3* bid, dim3* block, dim3* grid, int* warp);
void __cudaRegisterVar(void** binary, char* host, char* device, const char* name, int is_extern, std::size_t bytes,
                       int is_constant, int is_global);
void __cudaRegisterManagedVar(void** binary, void** slot, char* device, const char* name, int is_extern,
                              std::size_t bytes, int is_constant, int is_global);
}

namespace gradring::tests {
namespace {

template <class Value>
void append(std::string& bytes, const Value& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// An entry of PTX, as cuobjdump reads it.
std::string entry_of(const RegisteredKernels::Text& text) {
  std::string payload = text.ptx;
  payload.resize((payload.size() / 8 + 1) * 8, '\0');
  std::string bytes;
  append(bytes, std::uint16_t{1});  // PTX
  append(bytes, std::uint16_t{0x101});
  append(bytes, std::uint32_t{64});  // of this header
  append(bytes, std::uint64_t{payload.size()});
  append(bytes, std::uint32_t{0});  // compressed
  append(bytes, std::uint64_t{0});
  append(bytes, text.compute_capability);
  append(bytes, std::uint64_t{0});
  append(bytes, std::uint64_t{0});  // flags
  append(bytes, std::uint64_t{0});
  append(bytes, std::uint64_t{0});  // bytes after decompression
  return bytes + payload;
}

struct Wrapper {
  std::uint32_t magic = 0x466243b1;
  std::uint32_t version = 1;
  const void* container = nullptr;
  const void* unused = nullptr;
};

/// Kept until the process ends, as in a program.
std::deque<std::string>& containers() {
  static std::deque<std::string> all;
  return all;
}
std::deque<Wrapper>& wrappers() {
  static std::deque<Wrapper> all;
  return all;
}
std::deque<char>& hosts() {
  static std::deque<char> all;
  return all;
}

}  // namespace

RegisteredKernels::RegisteredKernels(const std::vector<Text>& texts) {
  std::string entries;
  for (const Text& text : texts) entries += entry_of(text);
  std::string container;
  append(container, std::uint32_t{0xba55ed50});
  append(container, std::uint16_t{1});
  append(container, std::uint16_t{16});
  append(container, std::uint64_t{entries.size()});
  containers().push_back(container + entries);
  wrappers().push_back({.container = containers().back().data()});
  wrapper_ = &wrappers().back();
  binary_ = __cudaRegisterFatBinary(&wrappers().back());
  __cudaRegisterFatBinaryEnd(binary_);
}

const void* RegisteredKernels::kernel(const char* name) {
  hosts().push_back('\0');
  const char* const host = &hosts().back();
  __cudaRegisterFunction(binary_, host, nullptr, name, -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  return host;
}

const void* RegisteredKernels::variable(const char* name, std::size_t bytes) {
  hosts().push_back('\0');
  __cudaRegisterVar(binary_, &hosts().back(), nullptr, name, 0, bytes, 0, 0);
  return &hosts().back();
}

void RegisteredKernels::managed_variable(const char* name, std::size_t bytes, void** slot) {
  __cudaRegisterManagedVar(binary_, slot, nullptr, name, 0, bytes, 0, 0);
}

}  // namespace gradring::tests
