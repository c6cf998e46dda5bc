// SPDX-License-Identifier: Apache-2.0
#include "train/setup/cuda_module_file.h"

#include "train/launch/launcher.h"

namespace gradring::train {

std::filesystem::path cuda_module_file() {
  const std::filesystem::path folder = std::filesystem::path(own_program()).parent_path();
  for (const char* place : {"libgradring_cuda.so", "../" GRADRING_MODULE_DIR "/libgradring_cuda.so"}) {
    std::error_code ignored;
    std::filesystem::path file = (folder / place).lexically_normal();
    if (std::filesystem::exists(file, ignored)) return file;
  }
  return {};
}

}  // namespace gradring::train
