// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/rollback.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace gradring::train {

bool Rollback::is_due(std::int64_t enqueued, bool all_taken) const {
  if (!undone_) return false;
  const bool runs_ahead = world_.device.id().kind == kernels::DeviceKind::cuda;
  return all_taken || enqueued >= undone_->step + (runs_ahead ? TrainStep::kMostAhead : 0);
}

ResumePoint Rollback::take() {
  const Undone undone = *std::exchange(undone_, std::nullopt);
  trouble_ = undone.trouble;
  rollbacks_.count(undone.step, trouble_);
  std::optional<ResumePoint> newest = read();
  const std::string from = world_.group.broadcast_on_host(newest ? newest->from.string() : "", 0);
  if (from.empty())
    throw DivergedError(trouble_ +
                        ", and there is no checkpoint to go back to yet: lower --lr, or save earlier by "
                        "--save-every-steps");
  return newest ? std::move(*newest) : ResumePoint{.checkpoint = {}, .from = from};
}

std::optional<ResumePoint> Rollback::read() const {
  if (!world_.newest_checkpoint) return std::nullopt;
  std::vector<std::string> remarks;
  auto newest = world_.newest_checkpoint(remarks);
  for (const std::string& remark : remarks) world_.metrics.remark(remark);
  return newest;
}

void Rollback::done(std::int64_t steps, std::int64_t epoch) {
  world_.metrics.went_back(steps, epoch);
  world_.metrics.remark(
      fmt::format("{}: went back to step {} (time {} of {})", trouble_, steps, rollbacks_.made(), Rollbacks::kMost));
}

}  // namespace gradring::train
