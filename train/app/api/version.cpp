// SPDX-License-Identifier: Apache-2.0
#include <gradring/version.h>

#include "kernels/base/commit.h"

namespace gradring::inline v1 {

std::string version() { return std::string(GRADRING_VERSION " (commit ") + kCommit + ")"; }

}  // namespace gradring::inline v1
