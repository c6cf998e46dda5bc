// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tests/nn/support/program_rig.h"

namespace gradring::tests {

/// on_host(backend); for "cuda" a GPU of open_test_gpus and its backend. Without one both are null, and `why_not` has the
/// reason.
RigDevice on_any_device(const std::string& backend, std::string& why_not);

}  // namespace gradring::tests
