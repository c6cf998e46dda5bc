// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/operations/span.h"

#include "kernels/lib/level_copies.h"

namespace gradring::simulated_gpu {

GRADRING_DECLARE_COPIES(SpanOf, span_loop);  // span_loop.cpp

Span span_of(const Addresses& addresses, unsigned bytes) {
  static const SpanOf loop = GRADRING_COPY_TO_RUN(span_loop)();
  return loop(addresses, bytes);
}

}  // namespace gradring::simulated_gpu
