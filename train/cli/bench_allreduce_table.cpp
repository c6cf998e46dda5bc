// SPDX-License-Identifier: Apache-2.0
#include "train/cli/bench_allreduce_table.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "train/cli/bench_file.h"

namespace gradring::train {
namespace {

using comm::bench::algorithm_bandwidth;
using comm::bench::bus_bandwidth;

constexpr double kMicro = 1e-6;
constexpr double kGiga = 1e9;

const char* medium_of(const AllReduceBenchOptions& options) { return options.comm == "tcp" ? "tcp" : "shm"; }

double bus_gigabytes(const AllReduceRow& row, const AllReduceReport& report) {
  return bus_bandwidth(row.bytes, row.ours.median, report.world_size) / kGiga;
}

}  // namespace

std::size_t AllReduceReport::wrong() const {
  std::size_t all = 0;
  for (const AllReduceRow& row : rows) all += row.wrong.value_or(0);
  return all;
}

double AllReduceReport::average_bus_bandwidth() const {
  double sum = 0;
  for (const AllReduceRow& row : rows) sum += bus_gigabytes(row, *this);
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

std::string table_head(const AllReduceReport& report, const AllReduceBenchOptions& options) {
  std::string names = "#       size         count      type   redop    root     time   algbw   busbw  #wrong";
  std::string units = "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)        ";
  if (options.report_iterations) {
    names += "    i_min     i_p50     i_p95     i_p99     i_max    i_cv";
    units += "     (us)      (us)      (us)      (us)      (us)     (%)";
  }
  if (options.compare_gloo) {
    names += "      gloo   ratio";
    units += "      (us)        ";
  }
  return fmt::format(
      "# Collective test starting: gradring bench allreduce\n# {}\n"
      "# {} ranks over {}, in-place, warmup iters: {} iters: {}{} validation: {}{}\n#\n{}\n{}\n",
      to_string(report.provenance), report.world_size, medium_of(options), options.repetitions.warmups,
      options.repetitions.iterations, options.repetitions.fresh ? " on fresh data" : "", options.check ? 1 : 0,
      report.peer.empty() ? "" : "; in turns with " + report.peer, names, units);
}

std::string table_row(const AllReduceRow& row, const AllReduceReport& report, const AllReduceBenchOptions& options) {
  const kernels::bench::Statistics& ours = row.ours;
  std::string text = fmt::format("{:>12} {:>13} {:>9} {:>7} {:>7} {:>8.2f} {:>7.2f} {:>7.2f} {:>7}", row.bytes,
                                 row.elements, name_of(options.dtype), "sum", -1, ours.median / kMicro,
                                 algorithm_bandwidth(row.bytes, ours.median) / kGiga, bus_gigabytes(row, report),
                                 row.wrong ? std::to_string(*row.wrong) : "N/A");
  if (options.report_iterations)
    text += fmt::format(" {:>8.2f}  {:>8.2f}  {:>8.2f}  {:>8.2f}  {:>8.2f} {:>7.1f}", ours.least / kMicro,
                        ours.median / kMicro, ours.p95 / kMicro, ours.p99 / kMicro, ours.most / kMicro,
                        row.coefficient_of_variation);
  if (row.gloo) text += fmt::format("  {:>8.1f} {:>6.1f}x", row.gloo->median / kMicro, row.ratio());
  return text + "\n";
}

std::string table_foot(const AllReduceReport& report, const AllReduceBenchOptions& options) {
  const std::string wrong =
      options.check ? fmt::format("{} {}", report.wrong(), report.wrong() == 0 ? "OK" : "FAILED") : "not checked";
  return fmt::format("# Out of bounds values : {}\n# Avg bus bandwidth    : {:.4g}\n", wrong,
                     report.average_bus_bandwidth());
}

nlohmann::json results_of(const AllReduceReport& report, const AllReduceBenchOptions& options) {
  nlohmann::json rows = nlohmann::json::array();
  for (const AllReduceRow& row : report.rows) {
    nlohmann::json line = {{"size", row.bytes},
                           {"count", row.elements},
                           {"type", name_of(options.dtype)},
                           {"redop", "sum"},
                           {"root", -1},
                           {"in_place_microseconds", to_json(row.ours, 1 / kMicro)},
                           {"algbw_gb_s", algorithm_bandwidth(row.bytes, row.ours.median) / kGiga},
                           {"busbw_gb_s", bus_gigabytes(row, report)}};
    if (row.wrong) line["wrong"] = *row.wrong;
    if (row.gloo) line.update({{"gloo_microseconds", to_json(*row.gloo, 1 / kMicro)}, {"ratio", row.ratio()}});
    rows.push_back(line);
  }
  return {{"ranks", report.world_size},
          {"comm", medium_of(options)},
          {"warmups", options.repetitions.warmups},
          {"iterations", options.repetitions.iterations},
          {"fresh", options.repetitions.fresh},
          {"peer", report.peer},
          {"rows", rows}};
}

}  // namespace gradring::train
