// SPDX-License-Identifier: Apache-2.0
#include "train/cli/bench_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "kernels/bench/case_families.h"
#include "kernels/bench/measure_case.h"
#include "kernels/bench/roof.h"
#include "kernels/runtime/host/host_device.h"
#include "kernels/runtime/nearest_name.h"
#include "train/cli/bench_file.h"
#include "train/cli/command_line.h"
#include "train/config/parse_value.h"
#include "train/config/usage_error.h"

namespace gradring::train {
namespace {

namespace kb = kernels::bench;

constexpr double kMicroseconds = 1e6;
constexpr double kGiga = 1e-9;

struct Options {
  std::string device = "cpu";
  std::string operation;  ///< empty: all
  std::string variant;    ///< empty: all
  kb::Extents extents;
  kernels::DType dtype = kernels::DType::f32;
  kb::Effort effort;
  std::string json_file;
};

std::vector<std::string_view> operation_names() {
  std::vector<std::string_view> names;
  for (const kb::CaseFamily& family : kb::case_families()) names.push_back(family.operation);
  return names;
}

/// "batch=256,in=32"
kb::Extents parse_shape(std::string_view text) {
  kb::Extents extents;
  std::istringstream words{std::string(text)};
  for (std::string word; std::getline(words, word, ',');) {
    const std::size_t sign = word.find('=');
    if (sign == word.npos || sign == 0)
      throw UsageError(fmt::format("--shape is '{}', but must be like batch=256,in=32", text));
    const std::string name = word.substr(0, sign);
    extents[name] = parse_integer("shape " + name, word.substr(sign + 1), {.least = 1});
  }
  return extents;
}

kernels::DType parse_dtype(std::string_view text) {
  constexpr std::string_view kNames[] = {"f32", "f16", "bf16"};
  return *kernels::parse_dtype(parse_word("dtype", text, kNames));
}

CommandLine command_line(Options& options) {
  CommandLine line{.command = "gradring bench kernels", .options = {}};
  const auto word = [](std::string name, std::string shown, std::string help, auto read) {
    return CommandOption{.name = std::move(name), .value = std::move(shown), .help = std::move(help), .read = read};
  };
  line.options = {
      word("device", "cpu", "where they run [cpu]",
           [&](std::string_view text) {
             constexpr std::string_view kDevices[] = {"cpu"};
             options.device = parse_word("device", text, kDevices);
           }),
      word("op", "NAME", "one operation rather than all; an unknown name lists them",
           [&](std::string_view text) { options.operation = parse_word("op", text, operation_names()); }),
      word("variant", "NAME", "one variant rather than all", [&](std::string_view text) { options.variant = text; }),
      word("shape", "NAME=N,...", "other extents than the seed ConvNet's at batch 64, by the names in the table",
           [&](std::string_view text) { options.extents = parse_shape(text); }),
      word("dtype", "f32|f16|bf16", "of activations and weights [f32]",
           [&](std::string_view text) { options.dtype = parse_dtype(text); }),
      word("seconds", "F", "for each variant, hot and flushed [0.3]",
           [&](std::string_view text) { options.effort.seconds = parse_number("seconds", text, 0); }),
      word("json", "FILE", "the results as JSON, too", [&](std::string_view text) { options.json_file = text; })};
  line.options.back().letter = 'J';
  return line;
}

void print_help(const CommandLine& line) {
  fmt::print(
      "gradring bench kernels: every variant of every operation, on one core\n\n{}\n"
      "error    the largest, as a part of what the operation's contract allows; what is wrong gets no time\n"
      "hot      arrays in cache as far as they fit; flushed: in no cache\n"
      "roof     the median's share of what this core can do, measured in this run: the bytes moved (what is "
      "overwritten\n"
      "         unread counts twice) by the fastest of three plain loops, or the multiply-adds, whichever takes "
      "longer\n"
      "x plain  the median as a multiple of that of the loop that anyone would write (f32 only)\n",
      help_of(line.options));
}

kb::Roof::Work work_of(const kb::KernelCase& c) {
  kb::Roof::Work work{.footprint_bytes = 0, .traffic_bytes = c.bytes + c.unread_bytes, .flops = c.flops};
  for (const auto& array : c.arrays) work.footprint_bytes += static_cast<double>(array->bytes());
  return work;
}

/// Prints and keeps what is measured.
class Table {
 public:
  void head() const {
    fmt::print("{:<24} {:<14} {:>6} {:>9} {:>9} {:>7} {:>8} {:>6} {:>7}   {:>9} {:>9} {:>6} {:>7}\n", "", "", "error",
               "hot us", "p95", "GB/s", "GFLOP/s", "roof", "x plain", "flushed", "p95", "roof", "x plain");
  }

  void add(const kb::KernelCase& c, const std::vector<kb::Measured>& results) {
    fmt::print("{} [{}] {}\n", c.name, c.shape, name_of(c.dtype));
    const auto plain = std::ranges::find(results, kb::kPlainLoop, &kb::Measured::name);
    nlohmann::json variants = nlohmann::json::array();
    for (const kb::Measured& result : results)
      variants.push_back(result.right() ? row(c, result, plain == results.end() ? nullptr : &*plain) : wrong(result));
    std::fflush(stdout);
    cases_.push_back({{"name", c.name},
                      {"shape", c.shape},
                      {"dtype", name_of(c.dtype)},
                      {"bytes", c.bytes},
                      {"flops", c.flops},
                      {"variants", variants}});
  }

  const nlohmann::json& cases() const { return cases_; }
  int wrong_variants() const { return wrong_; }
  kb::Roof& roof() { return roof_; }

 private:
  nlohmann::json wrong(const kb::Measured& result) {
    ++wrong_;
    fmt::print("  {:<36} WRONG: an error of {:.3g} times what is allowed\n", result.name, result.error);
    return {{"name", result.name}, {"error", std::min(result.error, 1e300)}, {"right", false}};
  }

  nlohmann::json row(const kb::KernelCase& c, const kb::Measured& result, const kb::Measured* plain) {
    const double hot = result.hot.median;
    const double flushed = result.flushed.median;
    const double hot_roof = roof_.seconds(work_of(c), false) / hot;
    const double flushed_roof = roof_.seconds(work_of(c), true) / flushed;
    const auto beside = [plain](double seconds, const kb::Statistics kb::Measured::*way) {
      return plain ? fmt::format("{:.2f}", seconds / (plain->*way).median) : std::string();
    };
    fmt::print(
        "  {:<36} {:>6.2f} {:>9.1f} {:>9.1f} {:>7.1f} {:>8} {:>4.0f} % {:>7}   {:>9.1f} {:>9.1f} {:>4.0f} % {:>7}\n",
        result.name, result.error, hot * kMicroseconds, result.hot.p95 * kMicroseconds, c.bytes / hot * kGiga,
        c.flops > 0 ? fmt::format("{:.1f}", c.flops / hot * kGiga) : "", 100 * hot_roof,
        beside(hot, &kb::Measured::hot), flushed * kMicroseconds, result.flushed.p95 * kMicroseconds,
        100 * flushed_roof, beside(flushed, &kb::Measured::flushed));
    nlohmann::json json = {{"name", result.name},
                           {"error", result.error},
                           {"right", true},
                           {"hot_microseconds", to_json(result.hot, kMicroseconds)},
                           {"hot_share_of_roof", hot_roof},
                           {"flushed_microseconds", to_json(result.flushed, kMicroseconds)},
                           {"flushed_share_of_roof", flushed_roof}};
    if (plain) json["times_plain_loop"] = hot / plain->hot.median;
    return json;
  }

  kb::Roof roof_;
  nlohmann::json cases_ = nlohmann::json::array();
  int wrong_ = 0;
};

/// Extents belong to an operation: those that another one has of the same name mean something else.
void check_operation(const Options& options) {
  if (!options.extents.empty() && options.operation.empty())
    throw UsageError("--shape needs --op: extents are those of one operation");
}

void check_extents(const Options& options, const std::set<std::string, std::less<>>& known) {
  const std::vector<std::string_view> names(known.begin(), known.end());
  for (const auto& [name, value] : options.extents)
    if (!known.contains(name))
      throw UsageError(fmt::format("--shape names '{}', but there is no such extent.{} There are: {}", name,
                                   did_you_mean(name, names), fmt::join(names, ", ")));
}

void check_variant(const Options& options, bool found) {
  if (!found)
    throw UsageError(fmt::format("no operation asked for has a variant '{}' of that type here", options.variant));
}

}  // namespace

void bench_kernels(std::span<const std::string> args) {
  Options options;
  const CommandLine line = command_line(options);
  if (read_command_line(line, args).help) return print_help(line);

  check_operation(options);
  kernels::HostDevice device({.workers = 1});
  const auto stream = device.make_stream(kernels::StreamMode::in_place);
  const kernels::KernelSet kernels = kernels::kernel_set();
  kb::CaseMaker make(
      {.kernels = kernels, .device = device, .stream = *stream, .dtype = options.dtype, .extents = options.extents});
  const auto provenance = kb::provenance();
  Table table;
  bool found = false;
  bool begun = false;
  for (const kb::CaseFamily& family : kb::case_families()) {
    if (!options.operation.empty() && family.operation != options.operation) continue;
    const kb::Cases cases = family.cases(make);
    check_extents(options, make.extent_names());
    if (!std::exchange(begun, true)) {
      fmt::print("{}\none core: {:.0f} GFLOP/s in f32; {:.0f} GB/s within 1 MB, {:.0f} GB/s from memory\n\n",
                 to_string(provenance), table.roof().flops_per_second() * kGiga,
                 table.roof().bytes_per_second(1e6, false) * kGiga, table.roof().bytes_per_second(16e6, true) * kGiga);
      table.head();
    }
    for (const kb::KernelCase& c : cases) {
      const auto results = kb::measure(c, *stream, options.effort, options.variant);
      found = found || !results.empty();
      if (!results.empty()) table.add(c, results);
    }
  }
  check_variant(options, found);
  write_bench_file(options.json_file, "kernels", provenance,
                   {{"flops_per_second", table.roof().flops_per_second()}, {"cases", table.cases()}});
  if (table.wrong_variants() > 0) throw Error(fmt::format("{} results are wrong", table.wrong_variants()));
}

}  // namespace gradring::train
