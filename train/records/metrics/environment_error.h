// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/base/error.h"

namespace gradring::train {

/// The machine prevents the operation: a full disk, a read-only folder, a missing device. Exit code 3.
class EnvironmentError : public Error, public ExitsWith<kEnvironment> {
 public:
  using Error::Error;
};

}  // namespace gradring::train
