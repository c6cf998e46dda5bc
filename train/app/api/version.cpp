// SPDX-License-Identifier: Apache-2.0
#include <gradring/version.h>

#include "kernels/base/commit.h"

namespace gradring {
inline namespace v1 {

std::string version() { return std::string(GRADRING_VERSION " (commit ") + kCommit + ")"; }

}  // namespace v1
}  // namespace gradring
