// SPDX-License-Identifier: Apache-2.0
#include "train/options/file_advice.h"

#include <cerrno>

namespace gradring::train {

std::string advice_on(int error, std::string_view other) {
  if (error == EMFILE || error == ENFILE) return "raise ulimit -n";
  const std::string choice = "choose another " + std::string(other);
  if (error == EFBIG) return "raise ulimit -f, or " + choice;
  return error == ENOSPC || error == EDQUOT ? "free some space or " + choice : choice;
}

}  // namespace gradring::train
