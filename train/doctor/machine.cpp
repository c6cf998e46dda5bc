// SPDX-License-Identifier: Apache-2.0
#include "train/doctor/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "comm/transport/shared_memory/memfd.h"
#include "kernels/runtime/error.h"
#include "train/doctor/find_python.h"
#include "train/doctor/nvidia.h"
#include "train/launch/worker_environment.h"

namespace gradring::train::doctor {
namespace {

constexpr double kMebibyte = 1024 * 1024;
/// More than a rank of the default model needs with its default batch size.
constexpr double kEnoughMebibytes = 512;

std::string text_of(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

Processor processor() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  return Processor::read(cpuinfo);
}

Finding cores() {
  const int usable = usable_cores();
  const auto online = std::thread::hardware_concurrency();
  Finding finding{"cores", fmt::format("{} usable of {}", usable, online)};
  const auto quota = cpu_quota(text_of("/sys/fs/cgroup/cpu.max"));
  if (!quota || *quota >= usable) return finding;
  finding.found += fmt::format(", time for {:.1f}", *quota);
  finding.advice = fmt::format("this container is granted {:.1f} cores: start no more ranks than that", *quota);
  return finding;
}

Finding features(const Processor& processor) {
  std::vector<std::string> found;
  for (const char* flag : {"avx2", "fma", "avx512f", "avx512_bf16", "avx512_fp16", "amx_tile", "asimd", "sve"})
    if (processor.has(flag)) found.emplace_back(flag);
  return {"features", found.empty() ? "none that matters here" : fmt::format("{}", fmt::join(found, " "))};
}

/// The number of a line "MemAvailable:  12345 kB", in MiB.
double meminfo(const std::string& text, const std::string& name) {
  const std::size_t line = text.find(name + ":");
  return line == text.npos ? 0 : std::stod(text.substr(line + name.size() + 1)) / 1024;
}

Finding memory() {
  const std::string text = text_of("/proc/meminfo");
  const double available = meminfo(text, "MemAvailable");
  Finding finding{"memory", fmt::format("{:.0f} MiB, {:.0f} MiB available", meminfo(text, "MemTotal"), available)};
  if (available < kEnoughMebibytes)
    finding.advice = "that is little: end other programs, or start fewer ranks with a smaller --batch-size";
  return finding;
}

Finding shared_memory() {
  try {
    comm::Memfd file = comm::Memfd::create();
    file.grow(static_cast<std::size_t>(kMebibyte));
    return {"shared memory", "memfd works"};
  } catch (const Error& error) {
    return {"shared memory", fmt::format("memfd does not work: {}", error.what()),
            "ranks of this machine cannot share memory: train with --comm tcp"};
  }
}

/// gradring does not need /dev/shm, but PyTorch's data loaders do.
Finding dev_shm() {
  struct statvfs system {};
  if (::statvfs("/dev/shm", &system) != 0) return {"/dev/shm", "none; gradring does not need it"};
  const double free = static_cast<double>(system.f_bavail) * static_cast<double>(system.f_frsize);
  return {"/dev/shm", fmt::format("{:.0f} MiB free; gradring does not need it", free / kMebibyte)};
}

Finding nvidia(const std::optional<NvidiaDriver>& driver) {
  if (!driver) return {"NVIDIA driver", "none", "training uses the CPU; with a GPU, install its driver (libcuda.so.1)"};
  const std::string version =
      fmt::format("for CUDA {}.{}", driver->cuda_version / 1000, driver->cuda_version % 1000 / 10);
  if (!driver->problem.empty())
    return {"NVIDIA driver", version, "it does not start (" + driver->problem + "): look at nvidia-smi"};
  return {"NVIDIA driver", fmt::format("{}, {} GPU{}", version, driver->devices, driver->devices == 1 ? "" : "s"),
          driver->devices == 0 ? "no GPU is visible: look at nvidia-smi and CUDA_VISIBLE_DEVICES" : ""};
}

Finding python(const VariableLookup& environment) {
  const PythonSearch search = search_python_with_torch(environment);
  if (search.python) return {"PyTorch", search.to_string()};
  return {"PyTorch", "none", "only comparisons need it (gradring bench compare): " + search.to_string()};
}

}  // namespace

std::vector<Finding> found_here(const VariableLookup& environment) {
  const Processor chip = processor();
  const auto driver = find_nvidia_driver();
  std::vector<Finding> findings = {{"processor", chip.name.empty() ? "unknown" : chip.name},
                                   cores(),
                                   features(chip),
                                   memory(),
                                   shared_memory(),
                                   dev_shm(),
                                   nvidia(driver)};
  std::ranges::move(nvidia_libraries(driver && driver->devices > 0), std::back_inserter(findings));
  findings.push_back(python(environment));
  return findings;
}

Processor Processor::read(std::istream& cpuinfo) {
  Processor processor;
  for (std::string line; std::getline(cpuinfo, line) && !line.empty();) {
    const std::size_t colon = line.find(':');
    if (colon == line.npos) continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    std::istringstream value(line.substr(colon + 1));
    if (key == "model name") std::getline(value >> std::ws, processor.name);
    if (key == "flags" || key == "Features")
      for (std::string flag; value >> flag;) processor.flags.insert(flag);
  }
  return processor;
}

std::optional<double> cpu_quota(const std::string& cpu_max) {
  std::istringstream words(cpu_max);
  double quota = 0;
  double period = 0;
  if (!(words >> quota >> period) || period <= 0) return std::nullopt;  // "max 100000"
  return quota / period;
}

}  // namespace gradring::train::doctor
