// SPDX-License-Identifier: Apache-2.0
#include "train/bench/machine_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "kernels/base/child_process.h"
#include "kernels/base/deadline.h"
#include "kernels/base/error.h"
#include "train/options/environment_variable.h"

namespace gradring::train::bench {
namespace {

/// On an idle machine, its own services keep the load average below this, as a share of the cores.
constexpr double kIdleLoad = 0.25;
/// Shares of all cores that change a median by a percent or so.
constexpr double kOthersShare = 0.05;
constexpr double kStolenShare = 0.01;
constexpr double kGpuUtilization = 5;  // percent
/// Processor time is counted in ticks of 10 ms: nothing can be said of shorter benchmarks.
constexpr double kLeastJudged = 0.5;  // seconds
constexpr auto kQueryTimeout = std::chrono::seconds(10);

/// "0.50 0.40 0.30 2/123 4567": three averages, runnable and existing threads, the newest process.
void read_load(std::istream&& text, MachineState& state) {
  std::array<double, 3> averages{};
  int runnable = 0;
  if (!(text >> averages[0] >> averages[1] >> averages[2] >> runnable)) return;
  state.load_averages = averages;
  state.runnable = std::max(runnable - 1, 0);
}

/// "cpu user nice system idle iowait irq softirq steal guest guest_nice", in ticks; user and nice include the guests'.
void read_processor_times(std::istream&& text, MachineState& state) {
  std::string word;
  std::array<double, 8> ticks{};
  if (!(text >> word) || word != "cpu") return;
  for (double& each : ticks) text >> each;
  if (!text) return;
  const auto second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto [user, nice, system, idle, wait, hard, soft, stolen] = ticks;
  state.busy_seconds = (user + nice + system + hard + soft) / second;
  state.stolen_seconds = stolen / second;
  state.total_seconds = state.busy_seconds + state.stolen_seconds + (idle + wait) / second;
}

std::optional<double> mean_mhz(std::istream&& text) {
  double sum = 0;
  int cores = 0;
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("cpu MHz")) continue;
    std::istringstream value(line.substr(std::min(line.find(':') + 1, line.size())));
    if (double mhz = 0; value >> mhz) {
      sum += mhz;
      ++cores;
    }
  }
  return cores > 0 ? std::optional(sum / cores) : std::nullopt;
}

std::string first_word(std::istream&& text) {
  std::string word;
  text >> word;
  return word;
}

/// The device's name for nvidia-smi: CUDA_VISIBLE_DEVICES lists numbers or UUIDs.
std::string visible_device(int index) {
  std::istringstream list(system_variable("CUDA_VISIBLE_DEVICES").value_or(""));
  std::string device;
  for (int i = 0; std::getline(list, device, ','); ++i)
    if (i == index) return device;
  return std::to_string(index);
}

/// In the order in which nvidia-smi is asked for them, with their names in JSON.
constexpr std::pair<const char*, double GpuState::*> kGpuNumbers[] = {{"sm_mhz", &GpuState::sm_mhz},
                                                                      {"most_sm_mhz", &GpuState::most_sm_mhz},
                                                                      {"memory_mhz", &GpuState::memory_mhz},
                                                                      {"celsius", &GpuState::celsius},
                                                                      {"utilization", &GpuState::utilization}};

/// "NVIDIA H100, 1980, 1980, 2619, 35, 0"
std::optional<GpuState> parse_gpu_state(const std::string& line) {
  GpuState gpu;
  const std::size_t comma = line.find(',');
  if (comma == std::string::npos) return std::nullopt;
  gpu.name = line.substr(0, comma);
  std::istringstream numbers(line.substr(comma));
  for (const auto& [name, number] : kGpuNumbers)
    if (char separator = 0; !(numbers >> separator >> gpu.*number)) return std::nullopt;
  return gpu;
}

double seconds_of(const timeval& time) {
  constexpr double kMicrosecond = 1e-6;
  return static_cast<double>(time.tv_sec) + kMicrosecond * static_cast<double>(time.tv_usec);
}

double processor_seconds(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

}  // namespace

MachineState read_machine_state(const std::filesystem::path& root) {
  MachineState state;
  read_load(std::ifstream(root / "proc/loadavg"), state);
  read_processor_times(std::ifstream(root / "proc/stat"), state);
  state.cpu_mhz = mean_mhz(std::ifstream(root / "proc/cpuinfo"));
  state.governor = first_word(std::ifstream(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  return state;
}

std::optional<GpuState> read_gpu_state(int index) {
  try {
    ChildProcess query({.words = {"nvidia-smi", "--id=" + visible_device(index),
                                  "--query-gpu=name,clocks.sm,clocks.max.sm,clocks.mem,temperature.gpu,utilization.gpu",
                                  "--format=csv,noheader,nounits"}});
    return parse_gpu_state(query.read_line(Deadline::after(kQueryTimeout)));
  } catch (const DeviceError&) {
    return std::nullopt;  // no nvidia-smi, or it knows no such GPU
  }
}

std::size_t number_in_status(const std::string& process, std::string_view field) {
  std::ifstream status("/proc/" + process + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field)) return std::strtoull(line.c_str() + field.size(), nullptr, 10);
  return 0;
}

double processor_seconds_of_children() { return processor_seconds(RUSAGE_CHILDREN); }

double processor_seconds_of_process() { return processor_seconds(RUSAGE_SELF) + processor_seconds_of_children(); }

Interference interference(const MachineState& start, const MachineState& end, double own_seconds, double seconds) {
  const double total = end.total_seconds - start.total_seconds;
  if (total <= 0 || seconds < kLeastJudged) return {};
  return {.other_cores = std::max(end.busy_seconds - start.busy_seconds - own_seconds, 0.0) / seconds,
          .stolen_share = std::clamp((end.stolen_seconds - start.stolen_seconds) / total, 0.0, 1.0)};
}

std::vector<std::string> warnings_at_start(const MachineState& start, int cores) {
  std::vector<std::string> warnings;
  if (start.load_averages && start.load_averages->front() > kIdleLoad * cores)
    warnings.push_back(fmt::format(
        "the machine is loaded: load average {:.2f} on {} core(s), {} other thread(s) run now; expect noise, "
        "or end other programs and repeat",
        start.load_averages->front(), cores, start.runnable));
  if (start.gpu && start.gpu->utilization > kGpuUtilization)
    warnings.push_back(
        fmt::format("the GPU is in use: utilization {:.0f} % before the benchmark; end other programs on it and repeat",
                    start.gpu->utilization));
  return warnings;
}

std::vector<std::string> warnings_at_end(const Interference& found, int cores) {
  std::vector<std::string> warnings;
  if (found.other_cores > kOthersShare * cores)
    warnings.push_back(
        fmt::format("other programs kept {:.2f} of {} core(s) busy during the benchmark; repeat it on an idle machine",
                    found.other_cores, cores));
  if (found.stolen_share > kStolenShare)
    warnings.push_back(fmt::format(
        "other virtual machines took {:.1f} % of the processor time during the benchmark (steal); repeat it",
        100 * found.stolen_share));
  return warnings;
}

std::string to_string(const MachineState& state) {
  std::vector<std::string> parts;
  if (state.cpu_mhz) parts.push_back(fmt::format("clock {:.0f} MHz", *state.cpu_mhz));
  if (!state.governor.empty()) parts.push_back("governor " + state.governor);
  if (state.gpu)
    parts.push_back(fmt::format("SM clock {:.0f} of {:.0f} MHz", state.gpu->sm_mhz, state.gpu->most_sm_mhz));
  if (state.load_averages) parts.push_back(fmt::format("load average {:.2f}", state.load_averages->front()));
  return fmt::format("{}", fmt::join(parts, ", "));
}

nlohmann::json load_to_json(const MachineState& state) {
  nlohmann::json json = {{"running", state.runnable}};
  if (state.load_averages) json["average"] = *state.load_averages;
  return json;
}

nlohmann::json clocks_to_json(const MachineState& state) {
  nlohmann::json json = nlohmann::json::object();
  if (state.cpu_mhz) json["cpu_mhz"] = *state.cpu_mhz;
  if (!state.governor.empty()) json["governor"] = state.governor;
  if (state.gpu) {
    json["gpu"]["name"] = state.gpu->name;
    for (const auto& [name, number] : kGpuNumbers) json["gpu"][name] = *state.gpu.*number;
  }
  return json;
}

}  // namespace gradring::train::bench
