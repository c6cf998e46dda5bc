// SPDX-License-Identifier: Apache-2.0
#include "train/faults/injected_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "kernels/runtime/write_all.h"
#include "train/faults/do_fault.h"

namespace gradring::train {
namespace {

std::vector<PlannedFault> of_rank(std::span<const PlannedFault> plan, int rank) {
  std::vector<PlannedFault> own;
  std::ranges::copy_if(plan, std::back_inserter(own), [&](const PlannedFault& fault) { return fault.rank == rank; });
  return own;
}

void say_and_do(const PlannedFault& fault) {
  print_to_stderr(fmt::format("gradring train: --inject: {}\n", to_string(fault)));
  do_fault(fault);
}

}  // namespace

InjectedFaults::InjectedFaults(std::span<const Fault> faults, const FaultedWorld& world, int rank,
                               RunRequests& requests, nn::Backend& backend)
    : plan_(plan_faults(faults, world)),
      requests_(requests, of_rank(plan_, rank), say_and_do),
      backend_(backend, [this] { return requests_.in_step_of(FaultKind::nan); }) {}

std::vector<std::string> InjectedFaults::remarks() const {
  std::vector<std::string> remarks;
  for (const PlannedFault& fault : plan_) remarks.push_back("--inject: planned: " + to_string(fault));
  return remarks;
}

std::vector<std::string> InjectedFaults::closing_remarks() const {
  std::vector<std::string> remarks;
  for (const PlannedFault& fault : requests_.to_come())
    remarks.push_back("--inject: did not happen, for this process did not come to that step: " + to_string(fault));
  return remarks;
}

}  // namespace gradring::train
