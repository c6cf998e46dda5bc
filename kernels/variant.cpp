// SPDX-License-Identifier: Apache-2.0
#include "kernels/variant.h"

#include "kernels/runtime/nearest_name.h"

namespace gradring::kernels {

std::string no_such_variant(std::string_view name, std::span<const std::string_view> names) {
  std::string text = "There is no variant '" + std::string(name) + "'." + did_you_mean(name, names) + " There are:";
  for (std::size_t i = 0; i < names.size(); ++i) text += (i ? ", " : " ") + std::string(names[i]);
  return text;
}

}  // namespace gradring::kernels
