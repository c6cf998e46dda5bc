// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gradring::comm::bench {

/// The text of comm/bench/gloo_peer.py, which travels inside the binary.
extern const char* const kGlooScript;

}  // namespace gradring::comm::bench
