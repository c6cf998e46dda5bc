// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gradring::comm::bench {

/// The text of comm/bench/gloo_peer.py, embedded in the binary.
extern const char* const kGlooScript;

}  // namespace gradring::comm::bench
