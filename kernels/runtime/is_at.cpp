// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/is_at.h"

#include <sys/stat.h>

namespace gradring {

bool is_at(const std::filesystem::path& path, const UniqueFd& file) {
  struct stat opened {
  }, named{};
  return ::fstat(file.get(), &opened) == 0 && ::lstat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

}  // namespace gradring
