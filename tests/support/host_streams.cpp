// SPDX-License-Identifier: Apache-2.0
#include "tests/support/each_stream.h"

#include <gtest/gtest.h>

#include "kernels/host/host_device.h"

namespace gradring::tests {

using kernels::StreamMode;
using simt::ThreadOrder;

void for_each_stream(const std::function<void(kernels::Device&, kernels::Stream&)>& body) {
  struct Kind {
    const char* name;
    StreamMode mode;
    simt::ExecutorOptions execution;
  };
  const Kind kinds[] = {
      {"in place, one worker, forward", StreamMode::in_place, {.workers = 1, .order = ThreadOrder::forward}},
      {"in place, one worker, reverse, poisoned",
       StreamMode::in_place,
       {.workers = 1, .order = ThreadOrder::reverse, .poison_shared = true}},
      {"in place, 3 workers, random order 7",
       StreamMode::in_place,
       {.workers = 3, .order = ThreadOrder::random, .seed = 7}},
      {"asynchronous, 2 workers, forward", StreamMode::asynchronous, {.workers = 2, .order = ThreadOrder::forward}},
  };
  for (const Kind& kind : kinds) {
    SCOPED_TRACE(kind.name);
    kernels::HostDevice device(kind.execution);
    const auto stream = device.make_stream(kind.mode);
    body(device, *stream);
    finish(*stream);
  }
}

}  // namespace gradring::tests
