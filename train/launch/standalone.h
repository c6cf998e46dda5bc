// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gradring::train {

/// A random run id, in the form of a UUID.
std::string random_run_id();

/// A TCP port of this host that is free now. It is not opened: whoever wants it binds it.
///
/// Errors    DeviceError if there is none.
int free_tcp_port();

}  // namespace gradring::train
