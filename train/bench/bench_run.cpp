// SPDX-License-Identifier: Apache-2.0
#include "train/bench/bench_run.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/file.h"
#include "kernels/base/host_name.h"
#include "kernels/base/processors.h"
#include "kernels/host/host_device.h"
#include "kernels/runtime/cpu_level.h"
#include "train/core/setup/resume_command.h"
#include "train/records/metrics/named_file.h"

namespace gradring::train::bench {
namespace {

constexpr int kSchema = 1;

/// The load average counts on all of them.
int machine_cores() { return processors().online; }

MachineState machine_state(std::optional<int> gpu) {
  MachineState state = read_machine_state();
  if (gpu) state.gpu = read_gpu_state(*gpu);
  return state;
}

/// The processor alone: a device's description ends with its threads and the level of its code.
std::string processor() {
  const std::string description = kernels::HostDevice().description();
  return description.substr(0, description.rfind(", ", description.rfind(", ") - 1));
}

/// Pretty JSON, but each measurement on a line of its own.
std::string text_of(const nlohmann::ordered_json& envelope, const std::vector<BenchMeasurement>& measurements) {
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  std::string text = envelope.dump(2, ' ', false, kReplace);
  text.erase(text.rfind('\n'));  // and the brace behind it
  text += ",\n  \"measurements\": [";
  for (std::size_t i = 0; i < measurements.size(); ++i)
    text += (i > 0 ? ",\n    " : "\n    ") + to_json(measurements[i]).dump(-1, ' ', false, kReplace);
  return text + (measurements.empty() ? "]\n}\n" : "\n  ]\n}\n");
}

}  // namespace

void check_files(const BenchFiles& files) {
  check_output({.option = "--json-file", .path = files.json, .is_ours = is_result_json}, files.replace);
  check_output({.option = "--csv-file", .path = files.csv, .is_ours = is_result_csv}, files.replace);
}

BenchRun::BenchRun(std::string benchmark, BenchFiles files, std::optional<int> gpu)
    : benchmark_(std::move(benchmark)),
      files_((check_files(files), std::move(files))),
      gpu_(gpu),
      provenance_(kernels::bench::provenance()),
      began_(std::chrono::system_clock::now()),
      start_(machine_state(gpu)),
      processor_seconds_(processor_seconds_of_process()),
      warnings_(warnings_at_start(start_, machine_cores())) {
  for (const std::string& warning : warnings_)
    print_to_stderr(fmt::format("gradring bench {}: warning: {}\n", benchmark_, warning));
}

std::string BenchRun::title() const {
  return fmt::format("{}\n{}", kernels::bench::to_string(provenance_), to_string(start_));
}

void BenchRun::add(BenchMeasurement measurement) {
  check(!measurement.samples.empty(), "a measurement without samples");
  measurements_.push_back(std::move(measurement));
}

nlohmann::ordered_json BenchRun::envelope(const nlohmann::json& results) const {
  nlohmann::ordered_json file = {
      {"schema", kSchema},
      {"benchmark", benchmark_},
      {"machine", provenance_.machine},
      {"date", provenance_.date},
      {"commit", provenance_.commit},
      {"time", std::chrono::duration<double>(began_.time_since_epoch()).count()},
      {"seconds", seconds_},
      {"host", host_name()},
      {"command", own_command()},
      {"cpu",
       {{"model", processor()}, {"cores", machine_cores()}, {"level", kernels::cpu_level_name(kernels::cpu_level())}}},
      {"clocks", {{"start", clocks_to_json(start_)}, {"end", clocks_to_json(end_)}}},
      {"load",
       {{"start", load_to_json(start_)},
        {"end", load_to_json(end_)},
        {"other_cores", six_digits(interference_.other_cores)},
        {"stolen_share", six_digits(interference_.stolen_share)}}},
      {"warnings", warnings_}};
  for (const auto& [name, value] : results.items()) file[name] = value;
  return file;
}

void BenchRun::finish(const nlohmann::json& results) {
  seconds_ = watch_.seconds();
  end_ = machine_state(gpu_);
  const double own = processor_seconds_of_process() - processor_seconds_ + other_processes_;
  interference_ = interference(start_, end_, own, seconds_);
  for (const std::string& warning : warnings_at_end(interference_, machine_cores())) {
    print_to_stderr(fmt::format("gradring bench {}: warning: {}\n", benchmark_, warning));
    warnings_.push_back(warning);
  }
  if (!files_.json.empty()) write_named_file(files_.json, text_of(envelope(results), measurements_));
  if (!files_.csv.empty()) write_named_file(files_.csv, to_csv(measurements_));
}

}  // namespace gradring::train::bench
