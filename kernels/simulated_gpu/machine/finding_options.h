// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gradring::simulated_gpu {

/// Which findings count, and what follows one.
struct FindingOptions {
  /// What a GPU would let pass is noted, and kernels go on. Else the first finding ends its launch.
  bool goes_on = false;
  bool formal = false;       ///< formal findings, too
  std::string suppressions;  ///< the text of a file of them: see FindingLog
};

}  // namespace gradring::simulated_gpu
