// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/train/app/commands/support/workplace.h"

namespace gradring::tests {

/// Variables for a gradring in the workplace that loads tests/support/file_faults: operations below `folder` are
/// recorded in the file `record` of the workplace.
inline Workplace::Variables file_faults(const Workplace& place, const std::filesystem::path& folder,
                                        const char* record) {
  const std::filesystem::path library = place.path("file_faults.so");  // LD_PRELOAD takes no path with a space
  std::filesystem::remove(library);
  std::filesystem::create_symlink(GRADRING_FILE_FAULTS, library);
  return {{"LD_PRELOAD", library.string()},
          {"GRADRING_FILE_FAULTS_BELOW", folder.string()},
          {"GRADRING_FILE_FAULTS_RECORD", place.path(record).string()}};
}

}  // namespace gradring::tests
