// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/simulated_gpu/ptx/built_module.h"

#include <fstream>
#include <iterator>
#include <span>
#include <string_view>

namespace gradring::ptx::tests {

std::vector<BuiltBinary> binaries_in(const std::filesystem::path& library) {
  std::ifstream file(library, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  constexpr std::string_view kContainer("\x50\xed\x55\xba\x01\x00\x10\x00",
                                        8);  // the magic number, version 1, 16 bytes
  std::vector<BuiltBinary> binaries;
  for (std::size_t at = bytes.find(kContainer); at != bytes.npos; at = bytes.find(kContainer, at + 1)) {
    const auto container = std::as_bytes(std::span(bytes).subspan(at));
    binaries.push_back({.texts = embedded_ptx(container), .code = {}});
    for (const EmbeddedCode& code : embedded_code(container))
      binaries.back().code.push_back(
          {code.compute_capability, std::string(reinterpret_cast<const char*>(code.elf.data()), code.elf.size())});
  }
  return binaries;
}

std::vector<std::string> ptx_in(const std::filesystem::path& library) {
  std::vector<std::string> texts;
  for (BuiltBinary& binary : binaries_in(library))
    for (EmbeddedPtx& each : binary.texts) texts.push_back(std::move(each.text));
  return texts;
}

}  // namespace gradring::ptx::tests
