// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gradring::kernels::bench {

/// The commit that this was built from, as scripts/cmake/write_commit.cmake found it.
extern const char* const kCommit;

}  // namespace gradring::kernels::bench
