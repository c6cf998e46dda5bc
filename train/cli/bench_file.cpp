// SPDX-License-Identifier: Apache-2.0
#include "train/cli/bench_file.h"

#include <nlohmann/json.hpp>

#include "train/report/line_file.h"

namespace gradring::train {

void write_bench_file(const std::string& path, const std::string& benchmark,
                      const kernels::bench::Provenance& provenance, const nlohmann::json& results) {
  if (path.empty()) return;
  nlohmann::ordered_json file = {{"benchmark", benchmark},
                                 {"machine", provenance.machine},
                                 {"date", provenance.date},
                                 {"commit", provenance.commit}};
  for (const auto& [name, value] : results.items()) file[name] = value;
  write_named_file(path, file.dump(2) + "\n");
}

nlohmann::json to_json(const kernels::bench::Statistics& statistics, double unit) {
  return {{"count", statistics.count},     {"least", statistics.least * unit}, {"median", statistics.median * unit},
          {"p95", statistics.p95 * unit},  {"p99", statistics.p99 * unit},     {"most", statistics.most * unit},
          {"mean", statistics.mean * unit}};
}

}  // namespace gradring::train
