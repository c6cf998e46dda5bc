// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "comm/transports/nccl/nccl.h"
#include "comm/transports/nccl/nccl_api.h"

namespace gradring::comm::nccl {

/// How moves are split into slices, so that one slice is added while the next is sent. Equal on all ranks.
struct PipelineConfig {
  std::size_t chunk_bytes = 4 << 20;        ///< largest move of a schedule's step; see Transport::chunk_bytes
  std::size_t max_slice_bytes = 2 << 20;    ///< largest slice
  std::size_t min_slice_bytes = 256 << 10;  ///< smallest slice: shorter ones cost more launches than they hide
};

/// The transport's environment, which tests replace.
struct Dependencies {
  Api api;
  std::string host;        ///< unique per host and boot
  std::string namespaces;  ///< where process ids and loopback addresses mean the same: those of this process
  std::string process;     ///< describes this process: "process 4711 on node3"
  int pid = 0;
  /// Sets a variable of this process unless the user has set it.
  std::function<void(const std::string& name, const std::string& value)> set_default_environment;
  /// Prints the message and ends the process without calling NCCL. If it returns, the caller leaves the call behind.
  std::function<void(const std::string& message)> exit_process;
  std::chrono::nanoseconds abort_timeout = std::chrono::seconds(10);  ///< before exit_process
  PipelineConfig pipeline;
};

/// The real dependencies of this process, with NCCL's functions.
Dependencies system_dependencies(Api api);

/// make_nccl_transport with given dependencies.
std::unique_ptr<Transport> make_transport(const NcclOptions& options, const Dependencies& dependencies);

}  // namespace gradring::comm::nccl
