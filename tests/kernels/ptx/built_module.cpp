// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/ptx/built_module.h"

#include <fstream>
#include <iterator>
#include <span>
#include <string_view>

#include "kernels/ptx/fat_binary.h"

namespace gradring::ptx::tests {

std::vector<std::string> ptx_in(const std::filesystem::path& library) {
  std::ifstream file(library, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  constexpr std::string_view kContainer("\x50\xed\x55\xba\x01\x00\x10\x00",
                                        8);  // the magic number, version 1, 16 bytes
  std::vector<std::string> texts;
  for (std::size_t at = bytes.find(kContainer); at != bytes.npos; at = bytes.find(kContainer, at + 1))
    for (EmbeddedPtx& each : embedded_ptx(std::as_bytes(std::span(bytes).subspan(at))))
      texts.push_back(std::move(each.text));
  return texts;
}

}  // namespace gradring::ptx::tests
