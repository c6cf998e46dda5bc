// SPDX-License-Identifier: Apache-2.0
#include "train/bench/commands/allreduce_table.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "train/bench/commands/options.h"
#include "train/view/page/chart.h"

namespace gradring::train {

std::string table_head(const AllReduceReport& report, const AllReduceOptions& options) {
  std::string title = report.title;
  for (std::size_t end = 0; (end = title.find('\n', end)) != title.npos; end += 3) title.replace(end, 1, "\n# ");
  std::string names = "#       size         count      type   redop    root     time   algbw   busbw  #wrong    noise";
  std::string units = "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)              (%)";
  if (options.report_iterations) {
    names += "    i_min     i_p50     i_p95     i_p99     i_max    i_cv";
    units += "     (us)      (us)      (us)      (us)      (us)     (%)";
  }
  if (options.compare_gloo()) {
    names += "      gloo   ratio";
    units += "      (us)        ";
  }
  return fmt::format(
      "# Collective test starting: gradring bench allreduce\n# {}\n"
      "# {} ranks over {}, in-place, warmup iters: {} iters: {}{} validation: {}{}\n#\n{}\n{}\n",
      title, report.world_size, options.transport(), options.repetitions.warmups, options.repetitions.iterations,
      options.repetitions.fresh ? " on fresh data" : "", options.check ? 1 : 0,
      report.peer.empty() ? "" : "; in turns with " + report.peer, names, units);
}

std::string table_row(const AllReduceRow& row, const AllReduceReport& report, const AllReduceOptions& options) {
  const kernels::bench::Statistics& ours = row.ours;
  std::string text = fmt::format("{:>12} {:>13} {:>9} {:>7} {:>7} {:>8.2f} {:>7.2f} {:>7.2f} {:>7} {:>8.1f}", row.bytes,
                                 row.elements, name_of(options.dtype), "sum", -1, ours.median * kMicroseconds,
                                 row.algorithm_gigabytes(), row.bus_gigabytes(report.world_size),
                                 row.wrong ? std::to_string(*row.wrong) : "N/A", 100 * ours.noise());
  if (options.report_iterations)
    text += fmt::format(" {:>8.2f}  {:>8.2f}  {:>8.2f}  {:>8.2f}  {:>8.2f} {:>7.1f}", ours.least * kMicroseconds,
                        ours.median * kMicroseconds, ours.p95 * kMicroseconds, ours.p99 * kMicroseconds,
                        ours.most * kMicroseconds, row.coefficient_of_variation);
  if (row.gloo) text += fmt::format("  {:>8.1f} {:>6.1f}x", row.gloo->median * kMicroseconds, row.ratio());
  return text + "\n";
}

std::string table_foot(const AllReduceReport& report, const AllReduceOptions& options) {
  double sum = 0;
  for (const AllReduceRow& row : report.rows) sum += row.bus_gigabytes(report.world_size);
  const std::string wrong =
      options.check ? fmt::format("{} {}", report.wrong, report.wrong == 0 ? "OK" : "FAILED") : "not checked";
  return fmt::format("# Out of bounds values : {}\n# Avg bus bandwidth    : {:.4g}\n", wrong,
                     report.rows.empty() ? 0 : sum / static_cast<double>(report.rows.size()));
}

std::string plot_of(const AllReduceReport& report, const AllReduceOptions& options) {
  page::Series ours{.name = "gradring", .dots = true}, peer{.name = report.peer, .color = 1, .dots = true};
  for (const AllReduceRow& row : report.rows) {
    const auto bytes = static_cast<double>(row.bytes);
    ours.x.push_back(bytes);
    ours.y.push_back(row.bus_gigabytes(report.world_size));
    if (!row.gloo) continue;
    peer.x.push_back(bytes);
    peer.y.push_back(comm::bench::bus_bandwidth(row.bytes, row.gloo->median, report.world_size) / 1e9);
  }
  page::Chart chart{.title = fmt::format("All-reduce of {} ranks over {}: bus bandwidth, GB/s", report.world_size,
                                         options.transport()),
                    .x_label = "bytes",
                    .y_unit = "GB/s",
                    .x_scale = page::ScaleKind::logarithmic,
                    .from_zero = true,
                    .series = {ours}};
  if (!peer.x.empty()) chart.series.push_back(std::move(peer));
  return page::svg_file(chart);
}

nlohmann::json results_of(const AllReduceReport& report, const AllReduceOptions& options) {
  nlohmann::json rows = nlohmann::json::array();
  for (const AllReduceRow& row : report.rows) {
    nlohmann::json line = {{"size", row.bytes},
                           {"count", row.elements},
                           {"type", name_of(options.dtype)},
                           {"redop", "sum"},
                           {"root", -1},
                           {"in_place_microseconds", to_json(row.ours, kMicroseconds)},
                           {"algbw_gb_s", row.algorithm_gigabytes()},
                           {"busbw_gb_s", row.bus_gigabytes(report.world_size)}};
    if (row.wrong) line["wrong"] = *row.wrong;
    if (row.gloo) line.update({{"gloo_microseconds", to_json(*row.gloo, kMicroseconds)}, {"ratio", row.ratio()}});
    rows.push_back(line);
  }
  return {{"ranks", report.world_size},
          {"comm", options.transport()},
          {"warmups", options.repetitions.warmups},
          {"iterations", options.repetitions.iterations},
          {"fresh", options.repetitions.fresh},
          {"peer", report.peer},
          {"rows", rows}};
}

void add_measurements(bench::BenchRun& run, const AllReduceReport& report, const AllReduceOptions& options) {
  for (const AllReduceRow& row : report.rows) {
    const bench::MeasurementKey key = {{"ranks", std::to_string(report.world_size)},
                                       {"comm", options.transport()},
                                       {"algorithm", options.algorithm},
                                       {"fresh", options.repetitions.fresh ? "yes" : "no"},
                                       {"dtype", std::string(name_of(options.dtype))},
                                       {"size", std::to_string(row.bytes)}};
    run.add(in_microseconds(bench::joined(key, {{"name", "gradring"}}), row.ours));
    if (row.gloo) run.add(in_microseconds(bench::joined(key, {{"name", "gloo"}}), *row.gloo));
  }
}

}  // namespace gradring::train
