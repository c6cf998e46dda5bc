// SPDX-License-Identifier: Apache-2.0
#include "tests/data/support/written_tar.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace gradring::tests {
namespace {

constexpr std::size_t kBlock = 512;

void put(Bytes& header, std::size_t at, const std::string& text) {
  std::ranges::copy(text, header.begin() + static_cast<std::ptrdiff_t>(at));
}

std::string octal(std::size_t number, int digits) {
  char text[16];
  std::snprintf(text, sizeof text, "%0*zo", digits, number);
  return text;
}

Bytes header_of(const TarMember& member) {
  Bytes header(kBlock);
  put(header, 0, member.name);
  put(header, 100, "0000644");
  put(header, 124, octal(member.content.size(), 11));
  put(header, 148, "        ");
  header[156] = static_cast<std::uint8_t>(member.type);
  put(header, 257, std::string("ustar\00000", 8));
  put(header, 345, member.prefix);
  put(header, 148, octal(std::accumulate(header.begin(), header.end(), std::size_t{0}), 6) + '\0');
  return header;
}

}  // namespace

Bytes tar_bytes(const std::vector<TarMember>& members) {
  Bytes archive;
  for (const TarMember& member : members) {
    const Bytes header = header_of(member);
    archive.insert(archive.end(), header.begin(), header.end());
    archive.insert(archive.end(), member.content.begin(), member.content.end());
    archive.resize((archive.size() + kBlock - 1) / kBlock * kBlock);
  }
  archive.resize(archive.size() + 2 * kBlock);
  return archive;
}

}  // namespace gradring::tests
