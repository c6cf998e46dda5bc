// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/collective.h"

#include <algorithm>

namespace gradring::comm {
namespace {

std::size_t chunk_elements(const CollectiveSpec& spec) {
  if (spec.chunk_bytes == 0) return 0;
  return std::max<std::size_t>(1, spec.chunk_bytes / size_of(spec.range.dtype));
}

}  // namespace

Collective::Collective(const CollectiveSpec& spec, Transport& transport)
    : spec_(spec),
      extent_{.rank = transport.rank(),
              .world = transport.world_size(),
              .elements = spec.range.slice.elements,
              .chunk = chunk_elements(spec),
              .root = spec.root},
      transport_(transport),
      steps_(spec.schedule->step_count(extent_)),
      trace_(steps_ > 0 ? spec.trace : nullptr) {
  trace_.begin(spec.schedule->operation, spec.number, spec.range.slice.elements * size_of(spec.range.dtype));
}

bool Collective::advance() {
  if (steps_ == 0) return true;
  if (posted_ == 0) post_next();
  for (;;) {
    const Progress progress = transport_.poll();
    if (progress == Progress::pending) return false;
    if (posted_ < steps_) {
      post_next();
      continue;
    }
    if (progress == Progress::done) trace_.end();
    return progress == Progress::done;
  }
}

void Collective::post_next() {
  const Step step{.range = spec_.range,
                  .moves = spec_.schedule->step(extent_, posted_),
                  .operation = spec_.schedule->operation,
                  .algorithm = spec_.schedule->algorithm,
                  .root = spec_.root,
                  .collective = spec_.number,
                  .index = posted_};
  ++posted_;
  trace_.step(step);
  transport_.enqueue(step);
}

void drive(Collective& collective, Transport& transport, Deadline deadline) {
  while (!collective.advance()) transport.wait(deadline);
}

}  // namespace gradring::comm
