// SPDX-License-Identifier: Apache-2.0
#include "train/cli/bench_kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "kernels/bench/case_families.h"
#include "kernels/bench/provenance.h"
#include "kernels/runtime/nearest_name.h"
#include "nn/backend/cpu/onednn_peers.h"
#include "train/cli/bench_file.h"
#include "train/cli/bench_kernels_options.h"
#include "train/cli/bench_kernels_table.h"
#include "train/cli/ncu_command.h"
#include "train/config/usage_error.h"
#include "train/setup/compute.h"

namespace gradring::train {
namespace {

namespace kb = kernels::bench;

using Names = std::set<std::string, std::less<>>;

std::vector<kb::CaseFamily> families_of(const KernelsBenchOptions& options) {
  std::vector<kb::CaseFamily> families;
  std::ranges::copy_if(kb::case_families(), std::back_inserter(families), [&](const kb::CaseFamily& family) {
    return options.operation.empty() || family.operation == options.operation;
  });
  return families;
}

void check_name(const char* option, const std::string& name, const Names& known) {
  if (known.contains(name)) return;
  throw UsageError(fmt::format("{} names '{}', but there is only {}.{}", option, name, fmt::join(known, ", "),
                               did_you_mean(name, std::vector<std::string_view>(known.begin(), known.end()))));
}

/// Before anything is measured: to make the cases takes a second, to measure them minutes.
void check_names(const KernelsBenchOptions& options, kb::CaseMaker make) {
  Names variants;
  for (const kb::CaseFamily& family : families_of(options))
    for (const kb::KernelCase& c : family.cases(make))
      for (const kb::KernelCase::Candidate& candidate : c.variants) variants.insert(candidate.name);
  for (const auto& [name, value] : options.extents) check_name("--shape", name, make.extent_names());
  if (!options.variant.empty()) check_name("--variant", options.variant, variants);
}

std::unique_ptr<kb::Machine> machine_of(const Compute& compute) {
  return compute.module ? kb::make_gpu_machine(*compute.device, compute.kernels) : kb::make_cpu_machine();
}

/// The libraries of the device, at their best; what is missing is said.
std::unique_ptr<kb::PeerMaker> peers_of(const Compute& compute) {
  if (!compute.module) return nn::make_onednn_peers(*compute.device);
  return compute.module->make_peers(
      *compute.device, {.autotune = true, .plan_cache = plan_cache_file(), .say = [](const std::string& text) {
                          fmt::print("{}\n", text);
                        }});
}

}  // namespace

void bench_kernels(std::span<const std::string> args) {
  const KernelsBenchOptions options = parse_bench_kernels(args);
  if (options.help) {
    fmt::print("{}", bench_kernels_help());
    return;
  }
  if (options.ncu) {
    fmt::print("{}\n", ncu_command(options, this_program()));
    return;
  }
  const Compute compute = make_compute({.device = options.device});
  const auto machine = machine_of(compute);
  const auto stream = compute.device->make_stream(kernels::StreamMode::in_place);
  kb::CaseMaker::World world{.kernels = compute.kernels,
                             .device = *compute.device,
                             .stream = *stream,
                             .dtype = options.dtype,
                             .extents = options.extents};
  check_names(options, kb::CaseMaker(world));
  const auto provenance = kb::provenance();
  fmt::print("{}\n", to_string(provenance));
  const auto peers = options.no_peers ? nullptr : peers_of(compute);
  world.peers = peers.get();
  kb::CaseMaker make(world);
  KernelsTable table(*machine);
  table.begin();
  for (const kb::CaseFamily& family : families_of(options))
    for (const kb::KernelCase& c : family.cases(make)) {
      const auto results = kb::measure(c, *stream, *machine, options.effort, options.variant);
      if (!results.empty()) table.add(c, results);
    }
  write_bench_file(options.json_file, "kernels", provenance, table.results());
  if (table.wrong_variants() > 0) throw Error(fmt::format("{} results are wrong", table.wrong_variants()));
}

}  // namespace gradring::train
