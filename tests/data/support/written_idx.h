// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/temp_folder.h"

namespace gradring::tests {

/// The bytes of an IDX file with this header and these values, whether or not they fit together.
Bytes idx_bytes(const std::vector<std::uint32_t>& extents, const Bytes& values);

/// 0, 1, 2, ... modulo 251.
Bytes counting(std::size_t count);

/// One .gz member.
Bytes gzipped(const Bytes& plain);

}  // namespace gradring::tests
