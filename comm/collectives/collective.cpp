// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/collective.h"

#include <algorithm>

namespace gradring::comm {
namespace {

using kernels::TraceCategory;
using kernels::TraceTrack;

constexpr std::int64_t kNoPeer = -1;
constexpr std::int64_t kSeveralPeers = -2;

void name_peer(std::int64_t& peer, int rank) { peer = peer == kNoPeer || peer == rank ? rank : kSeveralPeers; }

std::size_t chunk_elements(const CollectiveSpec& spec) {
  if (spec.chunk_bytes == 0) return 0;
  return std::max<std::size_t>(1, spec.chunk_bytes / size_of(spec.range.dtype));
}

}  // namespace

void CollectiveTrace::begin(std::string_view operation, std::uint64_t number, std::size_t bytes) {
  if (!track_) return;
  collective_ = {.category = TraceCategory::collective,
                 .name = operation.data(),  // of a literal
                 .begin = TraceTrack::now(),
                 .numbers = {static_cast<std::int64_t>(number), static_cast<std::int64_t>(bytes)}};
}

void CollectiveTrace::step(const Step& step) {
  if (!track_) return;
  const std::int64_t now = TraceTrack::now();
  end_step(now);
  std::int64_t to = kNoPeer, from = kNoPeer;
  std::size_t elements = 0;
  for (const Move& move : step.moves) {
    name_peer(is_outgoing(move) ? to : from, move.peer);
    if (is_outgoing(move)) elements += move.slice.elements;
  }
  const std::size_t bytes = elements * size_of(step.range.dtype);
  step_ = {.category = TraceCategory::transfer,
           .name = step.operation.data(),
           .begin = now,
           .numbers = {static_cast<std::int64_t>(step.index), static_cast<std::int64_t>(bytes), to, from}};
}

void CollectiveTrace::end() {
  if (!track_) return;
  collective_.end = TraceTrack::now();
  end_step(collective_.end);
  track_->add(collective_);
}

void CollectiveTrace::end_step(std::int64_t now) {
  if (step_.begin == 0) return;
  step_.end = now;
  track_->add(step_);
}

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
