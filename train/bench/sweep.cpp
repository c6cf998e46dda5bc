// SPDX-License-Identifier: Apache-2.0
#include "train/bench/sweep.h"

#include <fmt/format.h>

#include <sstream>
#include <string>

#include "train/options/parse_value.h"
#include "train/options/usage_error.h"

namespace gradring::train::bench {
namespace {

constexpr const char* kSweepForms = "expected a number, or a sweep such as 16:512:*2 or 16:64:+16";

[[noreturn]] void throw_bad_sweep(std::string_view option, std::string_view text, std::string_view why) {
  throw UsageError(fmt::format("--{} is '{}', {}: {}", option, text, why, kSweepForms));
}

}  // namespace

std::vector<std::int64_t> parse_values(std::string_view option, std::string_view text) {
  const std::size_t first_end = text.find(':');
  if (first_end == text.npos) return {parse_integer(option, text, {.least = 1})};
  const std::size_t last_end = text.find(':', first_end + 1);
  if (last_end == text.npos) throw_bad_sweep(option, text, "which has no step");
  const std::int64_t first = parse_integer(option, text.substr(0, first_end), {.least = 1});
  const std::int64_t last = parse_integer(option, text.substr(first_end + 1, last_end - first_end - 1), {.least = 1});
  const std::string_view step = text.substr(last_end + 1);
  if (step.size() < 2 || (step.front() != '*' && step.front() != '+'))
    throw_bad_sweep(option, text, "whose step is neither *FACTOR nor +INCREMENT");
  const bool multiplies = step.front() == '*';
  const std::int64_t by = parse_integer(std::string(option) + " step", step.substr(1), {.least = multiplies ? 2 : 1});
  if (first > last) throw_bad_sweep(option, text, fmt::format("whose first value is above its last, {}", last));
  std::vector<std::int64_t> values;
  for (std::int64_t value = first; value <= last; value = multiplies ? value * by : value + by) {
    if (values.size() == kMostOfSweep)
      throw_bad_sweep(option, text, fmt::format("which has more than {} values", kMostOfSweep));
    values.push_back(value);
  }
  return values;
}

std::vector<kernels::bench::Extents> parse_shapes(std::string_view text) {
  std::vector<kernels::bench::Extents> shapes = {{}};
  std::istringstream words{std::string(text)};
  for (std::string word; std::getline(words, word, ',');) {
    const std::size_t sign = word.find('=');
    if (sign == word.npos || sign == 0)
      throw UsageError(fmt::format("--shape is '{}', but must be like batch=256,in=32 or batch=16:512:*2", text));
    const std::string name = word.substr(0, sign);
    if (shapes.front().contains(name)) throw UsageError(fmt::format("--shape is '{}', but names {} twice", text, name));
    const auto values = parse_values("shape " + name, std::string_view(word).substr(sign + 1));
    if (shapes.size() * values.size() > kMostOfSweep)
      throw UsageError(
          fmt::format("--shape is '{}', which has more than {} shapes: sweep fewer extents, or in larger "
                      "steps",
                      text, kMostOfSweep));
    std::vector<kernels::bench::Extents> product;
    for (const auto& shape : shapes)
      for (const std::int64_t value : values) {
        product.push_back(shape);
        product.back()[name] = value;
      }
    shapes = std::move(product);
  }
  return shapes;
}

}  // namespace gradring::train::bench
