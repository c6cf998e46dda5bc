// SPDX-License-Identifier: Apache-2.0
#include "train/core/faults/injected_faults.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <thread>
#include <utility>

#include "kernels/base/file.h"
#include "nn/backend/decorators.h"

namespace gradring::train {
namespace {

/// A loss whose gradients are NaN while `now` is set. A NaN among the pixels would not do: max(x, 0) is 0 there.
class NanLoss final : public nn::LossPlanDecorator {
 public:
  NanLoss(std::unique_ptr<nn::LossPlan> inner, const bool& now) : LossPlanDecorator(std::move(inner)), now_(now) {}

  void enqueue(kernels::Stream& stream, const nn::LossPass& pass) override {
    nn::LossPass changed = pass;
    if (now_) changed.scale = std::numeric_limits<float>::quiet_NaN();
    LossPlanDecorator::enqueue(stream, changed);
  }

 private:
  const bool& now_;
};

class NanBackend final : public nn::BackendDecorator {
 public:
  NanBackend(nn::Backend& inner, const bool& now) : BackendDecorator(inner), now_(now) {}

  std::unique_ptr<nn::LossPlan> plan_cross_entropy(const nn::CrossEntropySpec& spec,
                                                   const nn::NodeSpec* last) override {
    return std::make_unique<NanLoss>(BackendDecorator::plan_cross_entropy(spec, last), now_);
  }

 private:
  const bool& now_;
};

std::vector<PlannedFault> take_faults_of(std::int64_t step, std::vector<PlannedFault>& faults) {
  const auto is_now = [step](const PlannedFault& fault) { return fault.step == step; };
  std::vector<PlannedFault> taken;
  std::ranges::copy_if(faults, std::back_inserter(taken), is_now);
  std::erase_if(faults, is_now);
  return taken;
}

}  // namespace

void print_and_perform(const PlannedFault& fault) {
  print_to_stderr(fmt::format("gradring train: --inject: {}\n", to_string(fault)));
  switch (fault.kind) {
    case FaultKind::kill:
      ::kill(::getpid(), SIGKILL);
      ::_exit(128 + SIGKILL);  // process 1 of a container does not die of its own signals
    case FaultKind::stop: ::kill(::getpid(), SIGSTOP); break;
    case FaultKind::delay: std::this_thread::sleep_for(fault.delay); break;
    case FaultKind::exit: std::_Exit(fault.code);
    case FaultKind::nan: break;
  }
}

InjectedFaults::InjectedFaults(std::span<const Fault> faults, const FaultedRun& run, int rank, Perform perform)
    : plan_(plan_faults(faults, run)), unannounced_(plan_), perform_(std::move(perform)) {
  std::ranges::copy_if(plan_, std::back_inserter(pending_),
                       [rank](const PlannedFault& fault) { return fault.rank == rank; });
}

void InjectedFaults::before_step(std::int64_t step) {
  for (const PlannedFault& fault : take_faults_of(step, unannounced_)) announce_(fault);
  const std::vector<PlannedFault> now = take_faults_of(step, pending_);
  nan_now_ = std::ranges::find(now, FaultKind::nan, &PlannedFault::kind) != now.end();
  for (const PlannedFault& fault : now) perform_(fault);
}

nn::Backend& InjectedFaults::backend(nn::Backend& inner) {
  if (std::ranges::find(pending_, FaultKind::nan, &PlannedFault::kind) == pending_.end()) return inner;
  nan_backend_ = std::make_unique<NanBackend>(inner, nan_now_);
  return *nan_backend_;
}

std::vector<std::string> InjectedFaults::remarks() const {
  std::vector<std::string> remarks;
  for (const PlannedFault& fault : plan_) remarks.push_back("--inject: planned: " + to_string(fault));
  return remarks;
}

std::vector<std::string> InjectedFaults::closing_remarks() const {
  std::vector<std::string> remarks;
  for (const PlannedFault& fault : pending_)
    remarks.push_back("--inject: did not happen, because this process did not reach that step: " + to_string(fault));
  return remarks;
}

}  // namespace gradring::train
