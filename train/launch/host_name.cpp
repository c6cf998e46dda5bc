// SPDX-License-Identifier: Apache-2.0
#include "train/launch/host_name.h"

#include <unistd.h>

#include <climits>

namespace gradring::train {

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0' ? name : "this host";
}

}  // namespace gradring::train
