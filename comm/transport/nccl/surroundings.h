// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "comm/transport/nccl/nccl.h"
#include "comm/transport/nccl/nccl_api.h"

namespace gradring::comm::nccl {

/// How a slice is cut, so that the sum of one piece is taken while the next travels. Equal on all ranks.
struct Cut {
  std::size_t chunk_bytes = 4 << 20;    ///< what one step of a schedule moves at most; see Transport::chunk_bytes
  std::size_t most_bytes = 2 << 20;     ///< a piece's
  std::size_t least_bytes = 256 << 10;  ///< shorter pieces would cost more in launches than they hide
};

/// What the transport takes from outside, and tests replace.
struct Surroundings {
  Api api;
  std::string host;     ///< differs between hosts, and after each start of one
  std::string process;  ///< what a person calls this process: "process 4711 on node3"
  int pid = 0;
  std::function<void(const std::string& name, const std::string& value)> set_environment;
  /// Ends the process without another word to NCCL. Where it returns, the caller waits on.
  std::function<void(const std::string& last_words)> leave_process;
  std::chrono::nanoseconds abort_patience = std::chrono::seconds(10);  ///< before it leaves
  Cut cut;
};

/// Of this process. Errors: as load_library.
Surroundings real_surroundings();

/// make_nccl_transport, in other surroundings.
std::unique_ptr<Transport> make_transport(const NcclOptions& options, const Surroundings& surroundings);

}  // namespace gradring::comm::nccl
