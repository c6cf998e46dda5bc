// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string>

#include "kernels/lib/variant.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/dtype.h"
#include "tests/support/each_stream.h"

namespace gradring::tests {

/// Calls body(variant, stream) for every variant of a table that can run `dtype`, on every kind of stream.
/// Failures name all three. The body waits with finish(stream) before it looks at results.
template <class Variant, class Body>
void for_each_variant(std::span<const Variant> table, kernels::DType dtype, Body body) {
  for_each_stream([&](kernels::Device& device, kernels::Stream& stream) {
    for (const Variant& variant : table) {
      if (!kernels::can_run(variant, device, dtype)) continue;
      SCOPED_TRACE(std::string(variant.name) + ", " + std::string(name_of(dtype)));
      body(variant, stream);
    }
  });
}

}  // namespace gradring::tests
