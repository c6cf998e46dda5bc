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

/// Cryptographically secure random bytes.
///
/// Errors    DeviceError if the kernel provides none.
Nonce random_nonce();

/// Compares two digests in constant time.
bool equal_digests(const Digest& a, const Digest& b);

/// The shared secret of the ranks of one run. It is never sent over the network.
class RunToken {
 public:
  static RunToken draw() { return RunToken(random_nonce()); }
  /// The SHA-256 of a secret of any length; as hard to guess as the secret.
  static RunToken from_secret(std::string_view secret);
  /// Errors    DeviceError if the text is not a result of to_text.
  static RunToken parse(const std::string& text);

  /// 64 hexadecimal digits.
  std::string to_text() const;
  /// HMAC-SHA256 of the text with this token as key (RFC 2104).
  Digest sign(std::string_view text) const;
  /// A token for a label, sign(label): it reveals neither this token nor those of other labels.
  RunToken derive(std::string_view label) const { return RunToken(sign(label)); }

 private:
  explicit RunToken(const std::array<std::uint8_t, 32>& secret) : secret_(secret) {}

  Nonce secret_;
};

}  // namespace gradring::comm::tcp
