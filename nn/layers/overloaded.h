// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gradring::nn {

/// One callable out of several lambdas, for std::visit.
template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;  // clang 16 does not deduce it for aggregates

}  // namespace gradring::nn
