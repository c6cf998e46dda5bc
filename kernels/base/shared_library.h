// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kernels/base/error.h"

namespace gradring {

/// A library that a machine may lack, opened while the program runs and never closed: its functions may be in use
/// until the end of the process.
///
/// Example   nn/backend/cuda/cudnn_api.cpp
class SharedLibrary {
 public:
  /// Looks where the system's loader looks, then in `folders`.
  ///
  /// Errors    DeviceError if `file_name` is nowhere, or does not load: with the loader's message.
  SharedLibrary(const std::string& file_name, const std::vector<std::filesystem::path>& folders);

  /// Where it was found.
  const std::string& path() const { return path_; }

  /// `function` becomes the library's function of that name; its type is the caller's knowledge.
  ///
  /// Errors    DeviceError if there is none.
  template <class Function>
  void find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(address_of(name));
  }

 private:
  void* address_of(const char* name) const;

  void* handle_ = nullptr;
  std::string path_;
};

/// The folders in which NVIDIA's libraries lie if the system's loader does not know them: `CUDNN_PATH`, `NCCL_HOME` and
/// `CUDA_HOME`, the active virtual environment's wheels, /usr/local/cuda.
std::vector<std::filesystem::path> nvidia_library_folders();

}  // namespace gradring
