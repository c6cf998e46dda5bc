// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/tcp/run_token.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <sys/random.h>

#include <charconv>

#include "kernels/runtime/error.h"

namespace gradring::comm::tcp {

Nonce random_nonce() {
  Nonce nonce;
  const ssize_t drawn = ::getrandom(nonce.data(), nonce.size(), 0);  // not interrupted for up to 256 bytes
  check<DeviceError>(drawn == static_cast<ssize_t>(nonce.size()),
                     "cannot read random bytes from the kernel (getrandom)");
  return nonce;
}

bool equal_digests(const Digest& a, const Digest& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

RunToken RunToken::from_secret(std::string_view secret) {
  Digest digest;
  ::SHA256(reinterpret_cast<const unsigned char*>(secret.data()), secret.size(), digest.data());
  return RunToken(digest);
}

RunToken RunToken::parse(const std::string& text) {
  Nonce secret;
  bool valid = text.size() == 2 * secret.size();
  for (std::size_t i = 0; valid && i < secret.size(); ++i) {
    const char* const digits = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(digits, digits + 2, secret[i], 16);
    valid = error == std::errc() && end == digits + 2;
  }
  check<DeviceError>(valid,
                     "the token of the ranks is invalid: expected 64 hexadecimal digits; check TcpGroupOptions::token, "
                     "or give each run its own store");
  return RunToken(secret);
}

std::string RunToken::to_text() const {
  std::string text;
  for (const std::uint8_t byte : secret_) text += fmt::format("{:02x}", byte);
  return text;
}

Digest RunToken::sign(std::string_view text) const {
  Digest digest;
  unsigned length = 0;
  const bool done =
      ::HMAC(::EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &length) != nullptr;
  check<DeviceError>(done && length == digest.size(),
                     "OpenSSL cannot compute HMAC-SHA256: check the OpenSSL configuration");
  return digest;
}

}  // namespace gradring::comm::tcp
