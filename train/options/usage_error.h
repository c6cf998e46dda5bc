// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/base/error.h"

namespace gradring::train {

/// An error that the user can fix on the command line. Its text goes to the terminal unchanged.
class UsageError : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

}  // namespace gradring::train
