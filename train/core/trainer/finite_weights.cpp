// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/finite_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "train/core/trainer/nan_policy.h"

namespace gradring::train {
namespace {

bool is_non_finite(double value) { return !std::isfinite(static_cast<float>(value)); }

/// An infinite second moment only makes a step of 0; of a negative one there is no root.
bool is_no_second_moment(double value) { return !(value >= 0); }

bool is_second_moment(const TensorRecord& tensor) { return tensor.name.starts_with("exp_avg_sq."); }

}  // namespace

std::string non_finite_weights(std::span<const TensorRecord> tensors) {
  std::string first;
  std::size_t more = 0;
  for (const TensorRecord& tensor : tensors) {
    const bool is_second = is_second_moment(tensor);
    const auto values = values_of(tensor);
    const auto count = values ? std::ranges::count_if(*values, is_second ? is_no_second_moment : is_non_finite) : 0;
    if (count == 0) continue;
    if (first.empty())
      first = fmt::format("{} of the {} values of {} {} NaN or {}", count, values->size(), in_quotes(tensor.name),
                          count == 1 ? "is" : "are", is_second ? "negative" : "infinite");
    else
      ++more;
  }
  if (more > 0) first += fmt::format(", and values of {} more tensor{}", more, more == 1 ? "" : "s");
  return first;
}

void check_finite_weights(std::span<const TensorRecord> weights, const std::filesystem::path& from) {
  if (const std::string found = non_finite_weights(weights); !found.empty())
    throw DivergedError(
        fmt::format("{}: {}; use a checkpoint from before that, or other weights", from.string(), found));
}

void check_optimizer_values(std::span<const TensorRecord> state, const std::filesystem::path& from) {
  if (const std::string found = non_finite_weights(state); !found.empty())
    throw DivergedError(fmt::format("{}: {}; use a checkpoint from before that, or only its weights, with --weights",
                                    from.string(), found));
}

void check_finite_outputs(std::span<const float> logits, std::size_t classes, const std::filesystem::path& from,
                          std::string_view precision) {
  std::size_t samples = 0;
  for (std::size_t begin = 0; begin + classes <= logits.size(); begin += classes)
    samples += std::ranges::any_of(logits.subspan(begin, classes), is_non_finite) ? 1 : 0;
  if (samples > 0)
    throw DivergedError(fmt::format(
        "{}: the outputs for {} of {} samples are NaN or infinite in {}, although the weights are finite; {}",
        from.string(), samples, logits.size() / classes, precision,
        precision == "fp32" ? "use other weights" : "evaluate with --precision fp32"));
}

}  // namespace gradring::train
