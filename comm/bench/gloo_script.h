// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gradring::comm::bench {

/// The text of gloo_peer.py.
extern const char* const kGlooScript;

}  // namespace gradring::comm::bench
