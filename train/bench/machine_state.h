// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gradring::train::bench {

/// A GPU's clocks, as nvidia-smi shows them.
struct GpuState {
  std::string name;
  double sm_mhz = 0;
  double most_sm_mhz = 0;
  double memory_mhz = 0;
  double celsius = 0;
  double utilization = 0;  ///< percent of the last second or less
};

/// What else the machine does, and how fast its clocks run, at one moment.
struct MachineState {
  std::optional<std::array<double, 3>> load_averages;  ///< of 1, 5 and 15 minutes
  int runnable = 0;                                    ///< threads that run or could run, besides the calling one
  double total_seconds = 0;                            ///< since the boot, of all cores: idle, busy and stolen
  double busy_seconds = 0;                             ///< of these, spent by programs and the kernel
  double stolen_seconds = 0;                           ///< of these, given to other virtual machines (steal)
  std::optional<double> cpu_mhz;                       ///< mean of the cores
  std::string governor;                                ///< of the clocks, "performance"; empty if not readable
  std::optional<GpuState> gpu;
};

/// Reads /proc and /sys under `root`. What cannot be read is left out.
MachineState read_machine_state(const std::filesystem::path& root = "/");

/// Asks nvidia-smi for a GPU: its number among those that this process sees. Nothing without nvidia-smi.
std::optional<GpuState> read_gpu_state(int index);

/// The number after a field of /proc/PROCESS/status, such as "VmHWM:", the peak resident memory in KiB; 0 if the process
/// has ended.
std::size_t number_in_status(const std::string& process, std::string_view field);

/// CPU seconds of the children of this process that have ended.
double processor_seconds_of_children();
/// The same with those of this process.
double processor_seconds_of_process();

/// What disturbed a benchmark between two moments.
struct Interference {
  double other_cores = 0;   ///< cores that other programs kept busy
  double stolen_share = 0;  ///< of processor time
};

/// `own_seconds`: processor time of the benchmark itself, all its processes, in between. Below half a second, nothing: the
/// kernel's ticks are too coarse.
Interference interference(const MachineState& start, const MachineState& end, double own_seconds, double seconds);

/// What a person should know before the numbers are believed; empty on an idle machine. `cores`: of the machine.
std::vector<std::string> warnings_at_start(const MachineState& start, int cores);
std::vector<std::string> warnings_at_end(const Interference& found, int cores);

/// "clock 2700 MHz, governor performance, load average 0.12"; of a GPU also "SM clock 1980 of 1980 MHz".
std::string to_string(const MachineState& state);

/// {"average": [..., ..., ...], "running": ...}
nlohmann::json load_to_json(const MachineState& state);
/// {"cpu_mhz": ..., "governor": ..., "gpu": {...}}
nlohmann::json clocks_to_json(const MachineState& state);

}  // namespace gradring::train::bench
