// SPDX-License-Identifier: Apache-2.0
#include "train/bench/commands/options.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "data/datasets/open_dataset.h"
#include "train/options/environment_variable.h"
#include "train/report/line_file.h"

namespace gradring::train {

std::vector<Option> dataset_options(std::string& dataset, std::string& data_dir) {
  data_dir = system_variable("GRADRING_DATA_DIR").value_or("");
  return {choice_option("dataset", data::dataset_names(), fmt::format("dataset (default {})", dataset), dataset),
          text_option("data-dir", "DIR", "folder with the files of the dataset (default GRADRING_DATA_DIR)", data_dir)};
}

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
