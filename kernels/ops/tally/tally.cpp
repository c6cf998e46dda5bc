// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/tally/tally.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "kernels/lib/reference.h"

namespace gradring::kernels::tally {
namespace {

/// How many classes come before `label` in the order of falling logits.
std::int64_t rank_of(std::span<const double> logits, std::size_t label) {
  std::int64_t before = 0;
  for (std::size_t c = 0; c < logits.size(); ++c)
    before += logits[c] > logits[label] || (logits[c] == logits[label] && c < label);
  return before;
}

}  // namespace

void check_args(const Args& args) {
  lib::check_floating("tally", "dtype", args.dtype);
  lib::check_at_least("tally", 0, {{"rows", args.rows}});
  lib::check_at_least("tally", 1, {{"classes", args.classes}});
  if (args.rows == 0) return;
  lib::check_pointers("tally", {{"logits", args.logits},
                                {"labels", args.labels},
                                {"loss", args.loss},
                                {"loss_sum", args.loss_sum},
                                {"counts", args.counts}});
}

void reference_run(const Args& args) {
  check_args(args);
  if (args.rows == 0) return;
  *args.loss_sum += static_cast<double>(*args.loss);
  const auto classes = static_cast<std::size_t>(args.classes);
  const std::vector<double> logits =
      lib::read_values(args.dtype, args.logits, static_cast<std::size_t>(args.rows) * classes);
  for (std::size_t row = 0; row < static_cast<std::size_t>(args.rows); ++row) {
    if (args.labels[row] < 0 || args.labels[row] >= args.classes) continue;
    const auto label = static_cast<std::size_t>(args.labels[row]);
    ++args.counts[1 + 3 * label];
    const auto x = std::span(logits).subspan(row * classes, classes);
    if (std::ranges::any_of(x, [](double logit) { return std::isnan(logit); })) continue;
    const auto predicted = static_cast<std::size_t>(std::ranges::max_element(x) - x.begin());
    ++args.counts[2 + 3 * predicted];
    if (predicted == label) ++args.counts[3 + 3 * label];
    if (rank_of(x, label) < kTop) ++args.counts[0];
  }
}

}  // namespace gradring::kernels::tally
