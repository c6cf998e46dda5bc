// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/cudart/device.h"

#include <map>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "kernels/simulated_gpu/cudart/error_text.h"
#include "kernels/simulated_gpu/machine/fault_report.h"

namespace gradring::simulated_gpu {
namespace {

/// Texts of errors that devices failed with. Never destroyed: callers keep pointers into it.
struct FailureTexts {
  std::mutex mutex;
  std::map<cudaError_t, std::string> texts;
};

FailureTexts& failure_texts() {
  static auto* const texts = new FailureTexts;
  return *texts;
}

/// What a GPU fails with.
cudaError_t error_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::out_of_bounds: return cudaErrorIllegalAddress;
    case FindingKind::misaligned: return cudaErrorMisalignedAddress;
    default: return cudaErrorLaunchFailure;
  }
}

/// While work runs.
class OriginScope {
 public:
  OriginScope(std::atomic<const HostStack*>& origin, const HostStack* stack) : origin_(origin) { origin_ = stack; }
  ~OriginScope() { origin_ = nullptr; }
  OriginScope(const OriginScope&) = delete;
  OriginScope& operator=(const OriginScope&) = delete;

 private:
  std::atomic<const HostStack*>& origin_;
};

}  // namespace

void Device::fail(cudaError_t error, Finding finding) {
  finding.device = index_;
  const std::string fault = text_of(finding);
  faults_.add(std::move(finding));
  {
    FailureTexts& known = failure_texts();
    const std::lock_guard lock(known.mutex);
    known.texts.try_emplace(error, joined(error_text(error), "; the simulated GPU found: ", fault));
  }
  cudaError_t none = cudaSuccess;
  failure_.compare_exchange_strong(none, error);
}

StreamWork Device::guarded(StreamWork work) {
  // Functions of the host run beside kernels, whose origin they must not replace.
  const bool notes_stack = notes_host_stacks_ && !work.on_host;
  const auto origin = notes_stack ? std::make_shared<const HostStack>(HostStack::here()) : nullptr;
  work.run = [this, run = std::move(work.run), origin](CountedWork* counted) {
    if (failure() != cudaSuccess) return 0.0;
    std::optional<OriginScope> scope;
    if (origin) scope.emplace(origin_, origin.get());
    try {
      return run(counted);
    } catch (const IllegalAccess& fault) {
      fail(cudaErrorIllegalAddress, fault.what(), FindingKind::out_of_bounds);
    } catch (const LocatedFault& fault) {
      fail(has_failed_assertion_ ? cudaErrorAssert : error_of(fault.finding().kind), fault.finding());
    } catch (const std::bad_alloc&) {
      fail(cudaErrorMemoryAllocation, "this host has no memory left to simulate it: lower the batch size");
    } catch (const std::exception& fault) {
      fail(cudaErrorLaunchFailure, fault.what());
    }
    return 0.0;
  };
  return work;
}

const char* described(cudaError_t error) {
  FailureTexts& known = failure_texts();
  const std::lock_guard lock(known.mutex);
  const auto found = known.texts.find(error);
  return found == known.texts.end() ? error_text(error) : found->second.c_str();
}

void forget_failures() {
  FailureTexts& known = failure_texts();
  const std::lock_guard lock(known.mutex);
  known.texts.clear();
}

}  // namespace gradring::simulated_gpu
