// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace gradring::data {

using Sha256 = std::array<std::byte, 32>;

/// SHA-256 of a message, in pieces.
///
/// Source    FIPS 180-4, by OpenSSL.
class Sha256Sum {
 public:
  Sha256Sum();
  ~Sha256Sum();
  Sha256Sum(const Sha256Sum&) = delete;
  Sha256Sum& operator=(const Sha256Sum&) = delete;

  void add(std::span<const std::byte> bytes);
  /// Call it once, at the end.
  Sha256 finish();

 private:
  void* context_;
};

/// Of all bytes at once.
Sha256 sha256_of(std::string_view bytes);

/// 64 hexadecimal digits.
std::string to_hex(const Sha256& sum);

}  // namespace gradring::data
