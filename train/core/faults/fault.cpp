// SPDX-License-Identifier: Apache-2.0
#include "train/core/faults/fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>

#include "kernels/base/nearest_name.h"
#include "train/options/parse_value.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

constexpr std::string_view kOption = "inject";
constexpr std::string_view kKinds[] = {"kill", "stop", "delay", "exit", "nan"};
constexpr std::string_view kRange = "..";
constexpr std::int64_t kHighestCode = 255;

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

[[noreturn]] void refuse(std::string_view fault, const std::string& why) {
  throw UsageError(fmt::format("--{} {}: {}", kOption, fault, why));
}

/// The KEY=VALUE pairs of one fault.
class Keys {
 public:
  Keys(std::string_view fault, std::string_view text) : fault_(fault) {
    for (const std::string_view part : split(text, ',')) {
      const std::size_t sign = part.find('=');
      if (sign == std::string_view::npos) refuse(fault_, fmt::format("'{}' is not KEY=VALUE", part));
      const auto [it, fresh] = values_.emplace(part.substr(0, sign), part.substr(sign + 1));
      if (!fresh) refuse(fault_, fmt::format("'{}' is given twice", it->first));
    }
  }

  std::optional<std::string_view> take(std::string_view key) {
    known_.push_back(key);
    const auto found = values_.find(key);
    if (found == values_.end()) return std::nullopt;
    const std::string_view value = found->second;
    values_.erase(found);
    return value;
  }

  std::string_view need(std::string_view key, const char* what) {
    const auto value = take(key);
    if (!value) refuse(fault_, fmt::format("{0} is missing: expected {0}={1}", key, what));
    return *value;
  }

  void refuse_others() const {
    if (values_.empty()) return;
    const std::string_view other = values_.begin()->first;
    refuse(fault_, fmt::format("unknown key '{}'.{}", other, did_you_mean(other, known_)));
  }

 private:
  std::string_view fault_;
  std::map<std::string_view, std::string_view> values_;
  std::vector<std::string_view> known_;
};

std::int64_t number(std::string_view key, std::string_view text, IntegerRange range) {
  return parse_integer(fmt::format("{} {}", kOption, key), text, range);
}

void read_steps(std::string_view text, Fault& fault) {
  const std::size_t dots = text.find(kRange);
  fault.first_step = number("step", text.substr(0, dots), {.least = 1});
  fault.last_step = dots == std::string_view::npos
                        ? fault.first_step
                        : number("step", text.substr(dots + kRange.size()), {.least = fault.first_step});
}

Fault parse_fault(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string kind = parse_word(kOption, text.substr(0, colon), kKinds);
  if (colon == text.size()) refuse(text, fmt::format("rank and step are missing: expected {}:rank=R,step=N", kind));
  Keys keys(text, text.substr(colon + 1));
  Fault fault{.kind = static_cast<FaultKind>(std::ranges::find(kKinds, kind) - std::begin(kKinds))};
  if (const auto rank = keys.need("rank", "R, a number or any"); rank != "any")
    fault.rank = static_cast<int>(number("rank", rank, {.least = 0}));
  read_steps(keys.need("step", "N, or FIRST..LAST, of which one is drawn"), fault);
  if (const auto seed = keys.take("seed")) fault.seed = parse_seed("inject seed", *seed);
  if (const auto attempt = keys.take("attempt")) {
    fault.attempt.reset();
    if (*attempt != "every") fault.attempt = static_cast<int>(number("attempt", *attempt, {.least = 0}));
  }
  if (fault.kind == FaultKind::delay)
    fault.delay = std::chrono::milliseconds(number("ms", keys.need("ms", "M, milliseconds"), {.least = 1}));
  if (fault.kind == FaultKind::exit)
    fault.code = static_cast<int>(number("code", keys.take("code").value_or("1"), {.least = 0, .most = kHighestCode}));
  keys.refuse_others();
  return fault;
}

std::string show(const Fault& fault) {
  std::string text = fmt::format("{}:rank={},step={}", name_of(fault.kind),
                                 fault.rank ? std::to_string(*fault.rank) : "any", fault.first_step);
  if (fault.last_step != fault.first_step) text += fmt::format("{}{}", kRange, fault.last_step);
  if (fault.seed != 0) text += fmt::format(",seed={}", fault.seed);
  if (fault.attempt != 0) text += ",attempt=" + (fault.attempt ? std::to_string(*fault.attempt) : "every");
  if (fault.kind == FaultKind::delay) text += fmt::format(",ms={}", fault.delay.count());
  if (fault.kind == FaultKind::exit) text += fmt::format(",code={}", fault.code);
  return text;
}

/// Below `count`, which is small: the modulo's bias does not matter.
std::int64_t draw(std::mt19937_64& random, std::int64_t count) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
}

std::mt19937_64 generator_of(const Fault& fault, std::size_t position, int attempt) {
  std::seed_seq seed{static_cast<std::uint32_t>(fault.seed), static_cast<std::uint32_t>(fault.seed >> 32),
                     static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(attempt)};
  return std::mt19937_64(seed);
}

void check_fault(const Fault& fault, const FaultedRun& run) {
  // A later attempt may have another world size.
  if (run.attempt == 0 && fault.rank.value_or(0) >= run.world_size)
    throw UsageError(fmt::format("--inject names rank {}, expected 0 to {}", *fault.rank, run.world_size - 1));
  if (fault.kind == FaultKind::nan && run.recorded)
    throw UsageError(
        "--inject nan changes one step, but on a GPU steps are recorded once and launched as they are: add "
        "--cuda-graph off");
}

}  // namespace

std::string_view name_of(FaultKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::vector<Fault> parse_faults(std::string_view text) {
  std::vector<Fault> faults;
  if (text.empty()) return faults;
  for (const std::string_view part : split(text, kBetweenFaults)) faults.push_back(parse_fault(part));
  return faults;
}

std::string show_faults(std::span<const Fault> faults) {
  std::string text;
  for (const Fault& fault : faults) text += (text.empty() ? "" : std::string(1, kBetweenFaults)) + show(fault);
  return text;
}

std::vector<PlannedFault> plan_faults(std::span<const Fault> faults, const FaultedRun& run) {
  std::vector<PlannedFault> plan;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const Fault& fault = faults[i];
    check_fault(fault, run);
    if (fault.attempt.value_or(run.attempt) != run.attempt) continue;
    std::mt19937_64 random = generator_of(fault, i, run.attempt);
    const std::int64_t step = fault.first_step + draw(random, fault.last_step - fault.first_step + 1);
    const int rank = fault.rank ? *fault.rank : static_cast<int>(draw(random, run.world_size));
    plan.push_back({.kind = fault.kind,
                    .rank = rank,
                    .step = step,
                    .delay = fault.delay,
                    .code = fault.code,
                    .seed_note = fault.is_drawn() ? fmt::format(" (seed {})", fault.seed) : ""});
  }
  return plan;
}

std::string to_string(const PlannedFault& fault) {
  std::string action(name_of(fault.kind));
  if (fault.kind == FaultKind::delay) action += fmt::format(" of {} ms", fault.delay.count());
  if (fault.kind == FaultKind::exit) action += fmt::format(" with code {}", fault.code);
  return fmt::format("{}, rank {} in step {}{}", action, fault.rank, fault.step, fault.seed_note);
}

}  // namespace gradring::train
