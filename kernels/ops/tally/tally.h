// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/lib/variant.h"

namespace gradring::kernels::tally {

/// What is called top-5 accuracy counts samples whose class is among this many with the largest logits.
inline constexpr std::int64_t kTop = 5;

/// How many counts there are: correct_in_top, then (samples, predicted, correct) of each class.
constexpr std::int64_t counts_of(std::int64_t classes) { return 1 + 3 * classes; }

/// Adds a classified batch to the totals of an evaluation. For each row, with label = labels[row]:
///   ++samples[label]
///   unless the row has a NaN, with p the first maximum of logits[row]:
///     ++predicted[p];   ++correct[label] if p == label
///     ++correct_in_top if fewer than kTop classes come before label: those with a larger logit, or an equal one and a
///     smaller number
/// and *loss_sum += *loss.
///
/// Shapes    logits: [rows, classes], row-major, contiguous; labels: [rows]; counts: [counts_of(classes)], in the order
///           of counts_of.
/// Types     logits: f32, f16 or bf16; labels: i32; loss: f32; loss_sum: f64; counts: i64.
/// Aliasing  counts and loss_sum overlap nothing. Everything is device memory.
/// Order     enqueued on the stream; returns at once.
/// Errors    InvalidArgument if rows is negative, classes below 1, a pointer null (unless rows is 0: then nothing is
///           added), or the type is not one of the three. A label that is not a class is counted nowhere.
/// Numerics  exact counts; the losses of batches are added in f64, in the order of the calls: deterministic.
/// Cost      reads the logits once.
/// Example   tests/kernels/ops/tally_test.cpp
struct Args {
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t classes = 0;
  const void* logits = nullptr;
  const std::int32_t* labels = nullptr;
  const float* loss = nullptr;  ///< of the batch: the sum over its rows
  double* loss_sum = nullptr;
  std::int64_t* counts = nullptr;
};

void check_args(const Args& args);
void reference_run(const Args& args);

using Variant = RunVariant<Args>;

}  // namespace gradring::kernels::tally
