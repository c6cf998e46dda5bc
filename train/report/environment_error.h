// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/runtime/error.h"

namespace gradring::train {

/// The machine does not let us: a full disk, a folder that may not be written, a device that is not there. Exit code 3.
class EnvironmentError : public Error {
 public:
  using Error::Error;
};

}  // namespace gradring::train
