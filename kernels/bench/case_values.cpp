// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/case_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gradring::kernels::bench {
namespace {

OutputValues values(const KernelCase& c, Side side, Stream& stream) {
  OutputValues all;
  for (const KernelCase::Output& output : c.outputs) all.push_back(output.array->values(side, stream));
  return all;
}

/// Relative to the allowed error. Sums of infinities may end as NaN or not, by their order.
double error_of(double actual, double expected, const KernelCase::Output& output, Trial trial) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected))) return 0;
  const bool may_be_non_finite = !std::isfinite(expected) ? output.bound(0) > 0 : output.spreads;
  if (trial == Trial::non_finite && may_be_non_finite && !std::isfinite(actual)) return 0;
  const double error = std::fabs(actual - expected) / output.bound(expected);
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

}  // namespace

void reset(const KernelCase& c, Stream& stream, Reset what, std::size_t moved) {
  for (const auto& array : c.arrays)
    if (what == Reset::all || !array->is_workspace) array->reset(stream, c.may_move ? moved : 0);
}

OutputValues reference_values(const KernelCase& c, Stream& stream, std::size_t moved) {
  reset(c, stream, Reset::all, moved);
  c.reference();
  return values(c, Side::host, stream);
}

OutputValues device_values(const KernelCase& c, Stream& stream) { return values(c, Side::device, stream); }

Comparison compare(const KernelCase& c, Author author, const OutputValues& expected, Stream& stream) {
  Comparison found;
  for (std::size_t o = 0; o < c.outputs.size(); ++o) {
    if (author == Author::peer && !c.outputs[o].is_of_peers) continue;
    const std::vector<double> actual = c.outputs[o].array->values(Side::device, stream);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const double error = error_of(actual[i], expected[o][i], c.outputs[o], c.trial);
      found.largest_error = std::max(found.largest_error, error);
      if (error <= 1) continue;
      if (!found.first_wrong) {
        const std::size_t bytes = c.outputs[o].array->element_bytes();
        found.first_wrong = {.output = c.outputs[o].name,
                             .index = i,
                             .value = actual[i],
                             .expected = expected[o][i],
                             .elements = actual.size(),
                             .data = c.outputs[o].array->as<std::byte>(Side::device) + i * bytes,
                             .bytes = bytes};
      }
      if (found.first_wrong->output == c.outputs[o].name) ++found.first_wrong->wrong_elements;
    }
  }
  return found;
}

}  // namespace gradring::kernels::bench
