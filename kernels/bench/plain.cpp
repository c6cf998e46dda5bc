// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/plain_loops.h"
#include "kernels/lib/level_copies.h"

namespace gradring::kernels::bench {

GRADRING_DECLARE_COPIES(PlainLoops, plain_loops);  // plain_loops.cpp

const PlainLoops& plain() {
  static const PlainLoops loops = GRADRING_COPY_TO_RUN(plain_loops)();
  return loops;
}

}  // namespace gradring::kernels::bench
