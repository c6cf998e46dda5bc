// SPDX-License-Identifier: Apache-2.0
#include "train/bench/writer_probe.h"

#include <fmt/format.h>

namespace gradring::train::bench {

void WriterProbe::before_run(const kernels::bench::WrongElement* element) {
  if (element == nullptr) {
    first_launch_ = gpus_.launches();
    return;
  }
  gpus_.repeat_from(first_launch_);
  gpus_.watch(element->data, element->bytes);
}

std::string WriterProbe::after_run() {
  const simulated_gpu::WatchedWrites writes = gpus_.watched();
  gpus_.watch(nullptr, 0);
  if (writes.count == 0) return "nobody wrote it";
  return writes.count == 1 ? "written once, by " + writes.last
                           : fmt::format("written {} times, last by {}", writes.count, writes.last);
}

}  // namespace gradring::train::bench
