// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "kernels/runtime/host/host_device.h"
#include "kernels/simt/error.h"

namespace gradring::tests {

/// What the CPU says about work that breaks a rule.
template <class Enqueue>
std::string message_of(Enqueue enqueue) {
  kernels::HostDevice device(simt::ExecutorOptions{.workers = 1});
  const auto stream = device.make_stream(kernels::StreamMode::in_place);
  try {
    enqueue(*stream);
  } catch (const simt::Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

}  // namespace gradring::tests
