// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gradring::comm::tcp {

using Digest = std::array<std::uint8_t, 32>;
using Nonce = std::array<std::uint8_t, 32>;

/// Bytes that nobody can guess.
///
/// Errors    DeviceError if the system has none.
Nonce random_nonce();

/// Whether two digests are equal, in a time that does not depend on where they differ.
bool equal_digests(const Digest& a, const Digest& b);

/// A secret that the ranks of one run share: rank 0 draws it, the others read it from the store, which strangers cannot
/// read. It never travels over the network itself.
class RunToken {
 public:
  static RunToken draw() { return RunToken(random_nonce()); }
  /// Errors    DeviceError if the text is not what to_text writes.
  static RunToken parse(const std::string& text);

  /// 64 hexadecimal digits.
  std::string to_text() const;
  /// HMAC-SHA256 of the text under this token (RFC 2104).
  Digest sign(std::string_view text) const;

 private:
  explicit RunToken(const Nonce& secret) : secret_(secret) {}

  Nonce secret_;
};

}  // namespace gradring::comm::tcp
