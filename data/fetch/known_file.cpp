// SPDX-License-Identifier: Apache-2.0
#include "data/fetch/known_file.h"

#include <system_error>
#include <vector>

#include "data/files/byte_source.h"

namespace gradring::data {
namespace {

std::string hash_of(const std::filesystem::path& path) {
  const auto source = open_plain(path);
  std::vector<std::uint8_t> piece(1 << 18);
  Sha256Sum sum;
  while (const std::size_t count = source->read(piece)) sum.add(std::as_bytes(std::span(piece).first(count)));
  return to_hex(sum.finish());
}

}  // namespace

FileCheck check_file(const std::filesystem::path& path, const KnownFile& expected) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return {.state = FileState::missing, .found = "is not there"};
  const std::uint64_t bytes = std::filesystem::file_size(path);
  if (bytes != expected.bytes)
    return {.state = FileState::wrong,
            .found = "has " + std::to_string(bytes) + " bytes, not " + std::to_string(expected.bytes)};
  const std::string hash = hash_of(path);
  if (hash != expected.sha256)
    return {.state = FileState::wrong, .found = "has the SHA-256 " + hash + ", not " + std::string(expected.sha256)};
  return {};
}

}  // namespace gradring::data
