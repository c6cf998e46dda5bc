// SPDX-License-Identifier: Apache-2.0
#include "train/bench/layouts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace gradring::train::bench {
namespace {

constexpr double kNotToBeCompared = std::numeric_limits<double>::infinity();

/// The length of the difference as a share of the length.
double relative_error(const std::vector<float>& actual, const std::vector<float>& expected) {
  if (actual.size() != expected.size()) return kNotToBeCompared;
  double difference = 0, length = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(static_cast<double>(actual[i]) - expected[i], 2);
    length += std::pow(static_cast<double>(expected[i]), 2);
  }
  return difference == 0 ? 0 : std::sqrt(difference / length);
}

/// The largest error(a[i], b[i]); what is no number is as far away as can be.
template <class T, class Error>
double largest(const std::vector<T>& a, const std::vector<T>& b, const Error& error) {
  if (a.size() != b.size()) return kNotToBeCompared;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double here = error(a[i], b[i]);
    most = std::isnan(here) ? kNotToBeCompared : std::max(most, here);
  }
  return most;
}

}  // namespace

std::vector<Layout> all_layouts(int most_ranks, const std::vector<std::int64_t>& passes) {
  std::vector<Layout> layouts;
  for (int ranks = 1; ranks <= most_ranks; ++ranks)
    for (const std::int64_t pass : passes)
      for (const bool recomputes : {false, true})
        for (const std::int64_t zero : {0, 1, 2, 3})
          layouts.push_back({.ranks = ranks, .passes = pass, .zero = zero, .recomputes = recomputes});
  return layouts;
}

Layout plainest(const Layout& layout) { return {.ranks = layout.ranks, .passes = layout.passes}; }

LayoutRow compare(const Layout& layout, const LayoutTraining& training, const LayoutTraining& first,
                  const std::string& same_bits, const Agreement& agreement) {
  LayoutRow row{.layout = layout, .parameters_sha256 = training.parameters_sha256};
  row.gradient_error = largest(training.gradients, first.gradients, relative_error);
  row.loss_error = largest(training.losses, first.losses, [](double a, double b) { return std::abs(a - b); });
  row.agrees =
      !training.gradients.empty() && row.gradient_error <= (agreement.exact ? 0 : agreement.most_gradient_error) &&
      row.loss_error <= (agreement.exact ? 0 : agreement.most_loss_error) && training.parameters_sha256 == same_bits;
  return row;
}

std::vector<LayoutRow> compare_layouts(const std::vector<Layout>& layouts, const LayoutTrainingSpec& spec,
                                       const Agreement& agreement, const std::function<void(const LayoutRow&)>& heard) {
  std::vector<LayoutRow> rows;
  LayoutTraining first, before;
  std::map<Layout, std::string> plain_weights;
  for (const Layout& layout : layouts) {
    LayoutTraining training = train_by(layout, spec);
    if (rows.empty()) first = training;
    if (layout == plainest(layout)) plain_weights[layout] = training.parameters_sha256;
    const std::string& same_bits = agreement.exact ? first.parameters_sha256 : plain_weights[plainest(layout)];
    LayoutRow row = compare(layout, training, first, same_bits, agreement);
    if (spec.save_at > 0 && !rows.empty()) {
      row.resumed_equal = train_by(layout, spec, &before.checkpoint).parameters_sha256 == first.parameters_sha256;
      row.agrees = row.agrees && *row.resumed_equal;
    }
    before = std::move(training);
    heard(row);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace gradring::train::bench
