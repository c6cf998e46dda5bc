// SPDX-License-Identifier: Apache-2.0
#include "train/cli/bench_kernels.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "kernels/bench/case_families.h"
#include "kernels/bench/provenance.h"
#include "kernels/runtime/host/host_device.h"
#include "kernels/runtime/nearest_name.h"
#include "train/cli/bench_file.h"
#include "train/cli/bench_kernels_options.h"
#include "train/cli/bench_kernels_table.h"
#include "train/config/usage_error.h"

namespace gradring::train {
namespace {

namespace kb = kernels::bench;

void check_extents(const KernelsBenchOptions& options, const std::set<std::string, std::less<>>& known) {
  const std::vector<std::string_view> names(known.begin(), known.end());
  for (const auto& [name, value] : options.extents)
    if (!known.contains(name))
      throw UsageError(fmt::format("--shape names '{}', but there is no such extent.{} There are: {}", name,
                                   did_you_mean(name, names), fmt::join(names, ", ")));
}

void check_variant(const KernelsBenchOptions& options, bool found) {
  if (!found)
    throw UsageError(fmt::format("no operation asked for has a variant '{}' of that type here", options.variant));
}

}  // namespace

void bench_kernels(std::span<const std::string> args) {
  const KernelsBenchOptions options = parse_bench_kernels(args);
  if (options.help) {
    fmt::print("{}", bench_kernels_help());
    return;
  }
  kernels::HostDevice device({.workers = 1});
  const auto stream = device.make_stream(kernels::StreamMode::in_place);
  const kernels::KernelSet kernels = kernels::kernel_set();
  kb::CaseMaker make(
      {.kernels = kernels, .device = device, .stream = *stream, .dtype = options.dtype, .extents = options.extents});
  const auto provenance = kb::provenance();
  KernelsTable table;
  bool found = false;
  bool begun = false;
  for (const kb::CaseFamily& family : kb::case_families()) {
    if (!options.operation.empty() && family.operation != options.operation) continue;
    const kb::Cases cases = family.cases(make);
    check_extents(options, make.extent_names());
    if (!std::exchange(begun, true)) {
      fmt::print("{}\n", to_string(provenance));
      table.begin();
    }
    for (const kb::KernelCase& c : cases) {
      const auto results = kb::measure(c, *stream, options.effort, options.variant);
      found = found || !results.empty();
      if (!results.empty()) table.add(c, results);
    }
  }
  check_variant(options, found);
  write_bench_file(options.json_file, "kernels", provenance, table.results());
  if (table.wrong_variants() > 0) throw Error(fmt::format("{} results are wrong", table.wrong_variants()));
}

}  // namespace gradring::train
