// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/shared_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>

namespace gradring {
namespace {

namespace fs = std::filesystem;

std::string path_of(void* handle, const std::string& asked) {
  link_map* map = nullptr;
  const bool known = ::dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 && map && map->l_name[0] != '\0';
  return known ? map->l_name : asked;
}

/// `root`/lib and `root`/lib64 of the root that a variable names.
void add_root(std::vector<fs::path>& folders, const char* variable) {
  const char* root = std::getenv(variable);
  if (!root || root[0] == '\0') return;
  for (const char* library : {"lib", "lib64"}) folders.push_back(fs::path(root) / library);
}

/// <environment>/lib/python3.x/site-packages/nvidia/<wheel>/lib
void add_wheels(std::vector<fs::path>& folders) {
  const char* environment = std::getenv("VIRTUAL_ENV");
  if (!environment) return;
  std::error_code ignored;
  for (const auto& python : fs::directory_iterator(fs::path(environment) / "lib", ignored))
    for (const auto& wheel : fs::directory_iterator(python.path() / "site-packages/nvidia", ignored))
      folders.push_back(wheel.path() / "lib");
}

}  // namespace

SharedLibrary::SharedLibrary(const std::string& file_name, const std::vector<fs::path>& folders) {
  handle_ = ::dlopen(file_name.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::string why = handle_ ? "" : ::dlerror();
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    if (handle_ || !fs::exists(folder / file_name, ignored)) continue;
    handle_ = ::dlopen((folder / file_name).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) why = ::dlerror();  // it is there and does not load: that is the better reason
  }
  if (!handle_) throw DeviceError(why);
  path_ = path_of(handle_, file_name);
}

void* SharedLibrary::address_of(const char* name) const {
  void* const address = ::dlsym(handle_, name);
  if (!address) throw DeviceError(path_ + " has no function " + name + ": install another version of it");
  return address;
}

std::vector<fs::path> nvidia_library_folders() {
  std::vector<fs::path> folders;
  for (const char* variable : {"CUDNN_PATH", "NCCL_HOME", "CUDA_HOME"}) add_root(folders, variable);
  add_wheels(folders);
  for (const char* folder : {"/usr/local/cuda/lib64", "/usr/local/cuda/lib"}) folders.emplace_back(folder);
  return folders;
}

}  // namespace gradring
