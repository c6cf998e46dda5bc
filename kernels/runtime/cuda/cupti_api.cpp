// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/cupti_api.h"

#include <cuda_runtime.h>

#include <filesystem>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/shared_library.h"

namespace gradring::kernels {
namespace {

namespace fs = std::filesystem;

/// Also where installers of CUDA put CUPTI.
std::vector<fs::path> folders() {
  std::vector<fs::path> folders = nvidia_library_folders();
  const std::size_t libraries = folders.size();
  for (std::size_t i = 0; i < libraries; ++i) folders.push_back(folders[i].parent_path() / "extras/CUPTI/lib64");
  return folders;
}

}  // namespace

CuptiApi CuptiApi::load() {
  constexpr int kMajors[] = {CUDART_VERSION / 1000, 13, 12};
  std::string why;
  for (const int major : kMajors) {
    try {
      return open("libcupti.so." + std::to_string(major));
    } catch (const DeviceError& error) {
      if (why.empty()) why = error.what();
    }
  }
  throw DeviceError(why +
                    "; install CUPTI (package cuda-cupti, or pip package nvidia-cuda-cupti), or add its folder to "
                    "LD_LIBRARY_PATH");
}

CuptiApi CuptiApi::open(const std::string& file) {
  const SharedLibrary library(file, folders());
  CuptiApi api;
  library.find("cuptiGetVersion", api.get_version);
  library.find("cuptiGetResultString", api.get_result_string);
  library.find("cuptiGetTimestamp", api.get_timestamp);
  library.find("cuptiActivityRegisterCallbacks", api.register_callbacks);
  library.find("cuptiActivityEnable", api.enable);
  library.find("cuptiActivityDisable", api.disable);
  library.find("cuptiActivityFlushAll", api.flush_all);
  library.find("cuptiActivityGetNextRecord", api.get_next_record);
  library.find("cuptiActivityGetNumDroppedRecords", api.get_num_dropped);
  std::uint32_t version = 0;
  cupti_check(api, api.get_version(&version), "cuptiGetVersion");
  check<DeviceError>(version >= kOldestVersion, [&] {
    return library.path() + " has version " + std::to_string(version) + " of CUPTI, expected " +
           std::to_string(kOldestVersion) + " (CUDA 12.0) or later";
  });
  return api;
}

void cupti_check(const CuptiApi& api, CUptiResult result, std::string_view call, std::source_location where) {
  if (result == CUPTI_SUCCESS) return;
  const char* text = nullptr;
  if (api.get_result_string(result, &text) != CUPTI_SUCCESS || !text) text = "unknown error";
  check<DeviceError>(
      false, [&] { return std::string(call) + " failed: " + text; }, where);
}

}  // namespace gradring::kernels
