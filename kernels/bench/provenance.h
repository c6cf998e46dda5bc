// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gradring::kernels::bench {

/// Where and with what a result was measured; every table and file of results begins with it.
struct Provenance {
  std::string machine;  ///< "Intel(R) Xeon(R) Platinum 8481C, 2 cores, Linux 6.1.0"
  std::string date;     ///< "2026-11-20"
  std::string commit;   ///< "8a87f55", with "-dirty" where the sources had changes; "unknown" outside of git
};

Provenance provenance();

/// The same in one line.
std::string to_string(const Provenance& provenance);

}  // namespace gradring::kernels::bench
