// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/host_name.h"

#include <limits.h>
#include <unistd.h>

namespace gradring {

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0' ? name : "unknown-host";
}

}  // namespace gradring
