// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace gradring::train {

/// Where libgradring_cuda.so lies: beside the program, as in a build folder, or in ../GRADRING_MODULE_DIR, as where it is
/// installed. Empty if it is in neither.
std::filesystem::path cuda_module_file();

}  // namespace gradring::train
