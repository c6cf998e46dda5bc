// SPDX-License-Identifier: Apache-2.0
#include "nn/models/expression.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/in_quotes.h"
#include "kernels/base/nearest_name.h"
#include "kernels/base/printable.h"

namespace gradring::nn {
namespace {

constexpr int kMostNested = 50;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool continues_word(char c) { return is_letter(c) || is_digit(c); }

/// Recursive descent: sum = product {(+|-) product}, product = factor {(*|/) factor}, factor = integer | name | -factor |
/// (sum).
class Evaluation {
 public:
  Evaluation(std::string_view text, const Values& values) : rest_(text), values_(values) {}

  std::int64_t all() {
    const std::int64_t value = sum();
    next();
    if (!rest_.empty()) fail_found("an operator or the end");
    return value;
  }

 private:
  [[noreturn]] static void fail(const std::string& reason) { throw InvalidArgument(reason); }
  [[noreturn]] void fail_found(const std::string& expected) const {
    const std::string found = rest_.empty() ? "the end" : in_quotes(rest_.substr(0, first_character(rest_).bytes));
    fail("found " + found + ", expected " + expected);
  }

  /// The next character that is no space; 0 at the end.
  char next() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) rest_.remove_prefix(1);
    return rest_.empty() ? '\0' : rest_.front();
  }

  char take() {
    const char c = next();
    if (!rest_.empty()) rest_.remove_prefix(1);
    return c;
  }

  std::string_view take_word() {
    const auto end = std::ranges::find_if_not(rest_, continues_word);
    const std::string_view word = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    rest_.remove_prefix(word.size());
    return word;
  }

  std::int64_t sum() {
    std::int64_t value = product();
    while (next() == '+' || next() == '-') {
      const char operation = take();
      value = combine(operation, value, product());
    }
    return value;
  }

  std::int64_t product() {
    std::int64_t value = factor();
    while (next() == '*' || next() == '/') {
      const char operation = take();
      value = combine(operation, value, factor());
    }
    return value;
  }

  std::int64_t factor() {
    if (++nested_ > kMostNested) fail("more than " + std::to_string(kMostNested) + " nested parentheses and signs");
    const std::int64_t value = innermost();
    --nested_;
    return value;
  }

  std::int64_t innermost() {
    const char c = next();
    if (c == '-') {
      take();
      return combine('-', 0, factor());
    }
    if (c == '(') {
      take();
      const std::int64_t value = sum();
      if (take() != ')') fail("a ) is missing");
      return value;
    }
    if (continues_word(c)) return is_digit(c) ? integer(take_word()) : value_of(take_word());
    fail_found("an integer, a name or (");
  }

  static std::int64_t integer(std::string_view digits) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc::result_out_of_range) fail("an integer is above 2^63 - 1");
    if (end != digits.data() + digits.size()) fail(in_quotes(digits) + " is no integer");
    return value;
  }

  std::int64_t value_of(std::string_view name) const {
    if (const auto found = values_.find(name); found != values_.end()) return found->second;
    std::vector<std::string_view> names;
    std::string list;
    for (const auto& [each, value] : values_) {
      list += (list.empty() ? "" : ", ") + each;
      names.push_back(each);
    }
    fail(in_quotes(name) + " has no value, expected one of " + list + "." + did_you_mean(name, names));
  }

  static std::int64_t combine(char operation, std::int64_t a, std::int64_t b) {
    std::int64_t value = 0;
    const auto shown = [&] { return std::to_string(a) + " " + operation + " " + std::to_string(b); };
    switch (operation) {
      case '+':
        if (!__builtin_add_overflow(a, b, &value)) return value;
        break;
      case '-':
        if (!__builtin_sub_overflow(a, b, &value)) return value;
        break;
      case '*':
        if (!__builtin_mul_overflow(a, b, &value)) return value;
        break;
      default:
        if (b == 0) fail(shown() + " divides by zero");
        if (b == -1) return combine('-', 0, a);
        if (a % b != 0) fail(shown() + " leaves a remainder");
        return a / b;
    }
    fail(shown() + " is outside the range of 64-bit integers");
  }

  std::string_view rest_;
  const Values& values_;
  int nested_ = 0;
};

}  // namespace

std::int64_t evaluate(std::string_view expression, const Values& values) {
  return Evaluation(expression, values).all();
}

bool is_name(std::string_view text) {
  return !text.empty() && is_letter(text.front()) && std::ranges::all_of(text, continues_word);
}

}  // namespace gradring::nn
