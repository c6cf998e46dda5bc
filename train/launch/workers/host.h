// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "train/launch/workers/worker_environment.h"

namespace gradring::train {

/// A random run id, in the form of a UUID.
std::string random_run_id();

/// A TCP port that is currently free at all addresses of this host. It is not opened.
///
/// Errors    DeviceError if there is none.
int free_tcp_port();

/// The number of NVIDIA GPUs that a worker sees: those in CUDA_VISIBLE_DEVICES if set, else by the driver's device
/// files. Loads no library, so that the launcher holds no CUDA context.
int visible_gpus(const VariableLookup& lookup, const std::filesystem::path& devices = "/dev");

/// Whether it is 0.0.0.0 or :: in any spelling: a listener there accepts on every interface, but peers cannot connect
/// to it.
bool is_wildcard_address(const std::string& host);

/// Whether it is this host's name, or one of its addresses belongs to this host.
///
/// Errors    comm::tcp::UnresolvedName.
bool is_this_host(const std::string& host);

/// The numeric address of this host by which others know it as `host`: not a loopback address, if it has another.
///
/// Errors    comm::tcp::UnresolvedName; InvalidArgument if no address of `host` belongs to this host.
std::string own_address(const std::string& host);

}  // namespace gradring::train
