// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "train/app/cuda/cuda_program.h"
#include "train/options/environment_variable.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

bool is_executable(const fs::path& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0;
}

}  // namespace

fs::path cuda_library_folder() {
  const fs::path beside = fs::read_symlink("/proc/self/exe").parent_path();
  for (const char* folder : {"cuda_program", "../" GRADRING_MODULE_DIR "/cuda_program"}) {
    std::error_code ignored;
    fs::path found = (beside / folder).lexically_normal();
    if (fs::exists(found / "libcudart.so.13", ignored)) return found;
  }
  throw DeviceError(
      "this gradring came without simulated GPUs for CUDA programs (no cuda_program/libcudart.so.13 beside the "
      "program, or in ../" GRADRING_MODULE_DIR
      "): install the package gradring-cuda, or build with GRADRING_CUDA=ON and the CUDA toolkit, 13.0 or later");
}

fs::path find_program(const std::string& name) {
  if (name.find('/') != name.npos) return fs::exists(name) ? fs::path(name) : fs::path();
  const std::string folders = system_variable("PATH").value_or("");
  for (std::size_t begin = 0; begin <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string folder = folders.substr(begin, end - begin);
    if (fs::path file = fs::path(folder.empty() ? "." : folder) / name; is_executable(file)) return file;
    begin = end + 1;
  }
  return {};
}

void execute(const fs::path& program, const Words& arguments) {
  std::vector<char*> words;
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  ::execvp(program.c_str(), words.data());  // which gives a script without #! to the shell
  throw ProgramError(fmt::format("{} cannot be executed: {}", program.string(), std::strerror(errno)),
                     errno == ENOENT ? kNotFound : kCannotExecute);
}

}  // namespace gradring::train
