// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/tally.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/base/error.h"

namespace gradring::train {
namespace {

/// How many classes come before `label` in the order of falling logits.
std::int64_t rank_of(std::span<const double> logits, std::size_t label) {
  std::int64_t before = 0;
  for (std::size_t c = 0; c < logits.size(); ++c)
    before += logits[c] > logits[label] || (logits[c] == logits[label] && c < label);
  return before;
}

std::int64_t sum(std::span<const ClassCounts> classes, std::int64_t ClassCounts::*count) {
  return std::accumulate(classes.begin(), classes.end(), std::int64_t{0},
                         [&](std::int64_t sum, const ClassCounts& of) { return sum + of.*count; });
}

}  // namespace

void Tally::add(std::span<const double> logits, std::span<const std::int32_t> labels) {
  check(logits.size() == labels.size() * classes_.size(), "there is not a logit of each class for each label");
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto label = static_cast<std::size_t>(labels[i]);
    check(label < classes_.size(), "a label is not one of the classes");
    ++classes_[label].samples;
    const auto row = logits.subspan(i * classes_.size(), classes_.size());
    if (std::ranges::any_of(row, [](double logit) { return std::isnan(logit); })) continue;
    const auto predicted = static_cast<std::size_t>(std::ranges::max_element(row) - row.begin());
    ++classes_[predicted].predicted;
    if (predicted == label) ++classes_[label].correct;
    if (rank_of(row, label) < kTop) ++correct_in_top_;
  }
}

std::int64_t Tally::samples() const { return sum(classes_, &ClassCounts::samples); }

std::int64_t Tally::correct() const { return sum(classes_, &ClassCounts::correct); }

std::vector<std::int64_t> Tally::counts() const {
  std::vector<std::int64_t> counts = {correct_in_top_};
  for (const ClassCounts& of : classes_) counts.insert(counts.end(), {of.samples, of.predicted, of.correct});
  return counts;
}

void Tally::set_counts(std::span<const std::int64_t> counts) {
  check(counts.size() == 1 + 3 * classes_.size(), "these are not the counts of as many classes");
  correct_in_top_ = counts[0];
  for (std::size_t c = 0; c < classes_.size(); ++c)
    classes_[c] = {.samples = counts[1 + 3 * c], .predicted = counts[2 + 3 * c], .correct = counts[3 + 3 * c]};
}

}  // namespace gradring::train
