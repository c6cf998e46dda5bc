// SPDX-License-Identifier: Apache-2.0
#include "data/files/sha256.h"

#include <openssl/evp.h>

#include "kernels/base/error.h"

namespace gradring::data {
namespace {

EVP_MD_CTX* handle(void* context) { return static_cast<EVP_MD_CTX*>(context); }

}  // namespace

Sha256Sum::Sha256Sum() : context_(EVP_MD_CTX_new()) {
  check<Error>(context_ && EVP_DigestInit_ex(handle(context_), EVP_sha256(), nullptr) == 1, "OpenSSL has no SHA-256");
}

Sha256Sum::~Sha256Sum() { EVP_MD_CTX_free(handle(context_)); }

void Sha256Sum::add(std::span<const std::byte> bytes) {
  check<Error>(EVP_DigestUpdate(handle(context_), bytes.data(), bytes.size()) == 1, "SHA-256 failed");
}

Sha256 Sha256Sum::finish() {
  Sha256 sum;
  check<Error>(EVP_DigestFinal_ex(handle(context_), reinterpret_cast<unsigned char*>(sum.data()), nullptr) == 1,
               "SHA-256 failed");
  return sum;
}

Sha256 sha256_of(std::string_view bytes) {
  Sha256Sum sum;
  sum.add(std::as_bytes(std::span(bytes)));
  return sum.finish();
}

std::string to_hex(const Sha256& sum) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::byte byte : sum) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

}  // namespace gradring::data
