// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/base/error.h"

namespace gradring::ptx {

/// A text that is not PTX, or a fat binary that is damaged; or one of them with something that is not known here.
///
/// what() of a text: "PTX line 41: register %r9 is not declared: add.s32 %r1, %r9, 2;"
class PtxError : public Error {
 public:
  using Error::Error;
};

}  // namespace gradring::ptx
