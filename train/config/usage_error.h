// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/runtime/error.h"

namespace gradring::train {

/// What the person at the command line can mend by typing something else; its text goes to the terminal as it is.
class UsageError : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

}  // namespace gradring::train
