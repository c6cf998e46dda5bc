// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "data/fetch/catalogue.h"
#include "tests/support/temp_folder.h"

namespace gradring::tests {

inline std::string sha256_of(const Bytes& content) {
  data::Sha256Sum sum;
  sum.add(std::as_bytes(std::span(content)));
  return data::to_hex(sum.finish());
}

/// What a catalogue would say of a file with this content.
class Known {
 public:
  Known(std::string name, const Bytes& content)
      : name_(std::move(name)), bytes_(content.size()), sha256_(sha256_of(content)) {}

  data::KnownFile file() const { return {.name = name_, .bytes = bytes_, .sha256 = sha256_}; }

 private:
  std::string name_;
  std::uint64_t bytes_;
  std::string sha256_;
};

}  // namespace gradring::tests
