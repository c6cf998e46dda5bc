// SPDX-License-Identifier: Apache-2.0
#include "train/core/doctor/doctor.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

#include "comm/transports/shared_memory/memfd.h"
#include "kernels/base/error.h"
#include "kernels/base/processors.h"
#include "kernels/base/shared_library.h"
#include "train/core/doctor/find_python.h"

namespace gradring::train::doctor {
namespace {

struct Close {
  void operator()(void* library) const { ::dlclose(library); }
};

/// Calls a function of the driver's C interface, which returns 0 on success.
template <class... Parameters>
int call(void* library, const char* name, Parameters... arguments) {
  constexpr int kNotFound = -1;
  const auto function = reinterpret_cast<int (*)(Parameters...)>(::dlsym(library, name));
  return function ? function(arguments...) : kNotFound;
}

/// 91900 with steps of 10000 and 100 is 9.19.0.
std::string dotted(std::size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string cudnn_version(const SharedLibrary& library) {
  std::size_t (*get_version)() = nullptr;
  library.find("cudnnGetVersion", get_version);
  return dotted(get_version());
}

std::string cublas_version(const SharedLibrary& library) {
  std::size_t (*get_version)() = nullptr;
  library.find("cublasLtGetVersion", get_version);
  return dotted(get_version());
}

std::string nccl_version(const SharedLibrary& library) {
  int (*get_version)(int*) = nullptr;
  library.find("ncclGetVersion", get_version);
  int version = 0;
  get_version(&version);
  return dotted(static_cast<std::size_t>(version));
}

struct Library {
  const char* name;
  std::vector<const char*> files;  ///< the first that exists is used
  std::string (*version)(const SharedLibrary&);
  const char* advice;
};

Finding look_for(const Library& library, bool gpu_is_there) {
  for (const char* file : library.files) {
    try {
      const SharedLibrary opened(file, nvidia_library_folders());
      return {library.name, fmt::format("{} ({})", library.version(opened), opened.path())};
    } catch (const DeviceError&) {
      continue;  // try the next
    }
  }
  return {library.name, "none", gpu_is_there ? library.advice : ""};
}

/// cuDNN, cuBLAS and NCCL, as the CUDA module would open them: path, version, and the effect of their absence. Gives no
/// advice without a GPU.
std::vector<Finding> nvidia_libraries(bool gpu_is_there) {
  const Library libraries[] = {
      {"cuDNN",
       {"libcudnn.so.9"},
       cudnn_version,
       "our own kernels compute every convolution: install cuDNN 9, or set CUDNN_PATH to its folder"},
      {"cuBLAS",
       {"libcublasLt.so.13", "libcublasLt.so.12"},
       cublas_version,
       "our own kernels compute every product: install the CUDA toolkit's cuBLAS, or set CUDA_HOME to its folder"},
      {"NCCL",
       {"libnccl.so.2"},
       nccl_version,
       "several GPUs cannot train together: install NCCL 2, or set NCCL_HOME to its folder"},
  };
  std::vector<Finding> findings;
  for (const Library& library : libraries) findings.push_back(look_for(library, gpu_is_there));
  return findings;
}

struct NvidiaDriver {
  int cuda_version = 0;  ///< the newest that it can run; 13000 is 13.0
  int devices = 0;
  std::string problem;  ///< the driver's message if it does not start
};

/// Queries libcuda.so.1, the driver's library, opened at run time. nullopt: not found.
std::optional<NvidiaDriver> find_nvidia_driver() {
  const std::unique_ptr<void, Close> library(::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL));
  if (!library) return std::nullopt;
  NvidiaDriver driver;
  call(library.get(), "cuDriverGetVersion", &driver.cuda_version);
  if (const int status = call(library.get(), "cuInit", 0u); status != 0) {
    const char* text = nullptr;
    call(library.get(), "cuGetErrorString", status, &text);
    driver.problem = text ? text : "error " + std::to_string(status);
    return driver;
  }
  call(library.get(), "cuDeviceGetCount", &driver.devices);
  return driver;
}

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
  const Processors found = processors();
  std::string text = fmt::format("{} usable of {}", found.usable(), found.online);
  if (found.affinity < found.online) text += fmt::format("; CPU affinity: {}", found.affinity);
  if (found.quota) text += fmt::format("; CPU quota of the control groups: {:.2f}", *found.quota);
  return {"cores", text};
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
    file.allocate(static_cast<std::size_t>(kMebibyte));
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

}  // namespace gradring::train::doctor
