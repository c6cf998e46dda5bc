// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gradring {

/// The name of this machine; "unknown-host" if it has none.
std::string host_name();

}  // namespace gradring
