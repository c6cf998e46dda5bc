// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gradring::train {

// Bytes as people read them, with three digits. Which unit depends on what they are of, not on where they are shown.

/// Memory: "24.4 MiB", "79.6 GiB" (powers of 1024), as nvidia-smi and PyTorch show it; "-" unless finite.
std::string memory_text(double bytes);

/// A file or a transfer: "11.6 MB", "2.01 GB" (powers of 1000), as disks and networks are measured; "-" unless finite.
std::string file_size_text(double bytes);

}  // namespace gradring::train
