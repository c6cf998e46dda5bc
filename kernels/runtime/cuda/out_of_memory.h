// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace gradring::kernels {

/// "139.8 GiB"
std::string gibibytes(std::size_t bytes);

/// What to tell who asked `device` for `asked` bytes where `free` of `total` are left: how much is missing, what to do.
std::string out_of_memory(const std::string& device, std::size_t asked, std::size_t free, std::size_t total);

}  // namespace gradring::kernels
