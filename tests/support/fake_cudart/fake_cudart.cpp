// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_cudart/fake_cudart.h"

#include <algorithm>

#include "tests/support/fake_cudart/objects.h"

namespace gradring::tests {

FakeCuda& fake_cuda() {
  static FakeCuda fake;
  return fake;
}

void reset_fake_cuda() {
  FakeCuda& fake = fake_cuda();
  const std::lock_guard lock(fake.mutex);
  fake.contexts.clear();
  fake.misplaced.clear();
  fake.calls.clear();
  fake.alive.clear();
  fake.hangs = false;
  fake.blocked.clear();
  fake.lost = false;
  fake.during_host_alloc = nullptr;
  fake.static_shared.clear();
  fake.allowed_shared.clear();
  fake.now = 0;
  captures().clear();
  current_device() = 0;
}

int& current_device() {
  static thread_local int device = 0;
  return device;
}

void open_context(const char* call) {
  ++fake_cuda().calls[call];
  fake_cuda().contexts.try_emplace(current_device(), call);
}

void open_context(const char* call, int device) {
  open_context(call);
  if (device != current_device())
    fake_cuda().misplaced.push_back(std::string(call) + ": " + std::to_string(device) + " with " +
                                    std::to_string(current_device()) + " current");
}

std::vector<std::shared_ptr<FakeCapture>>& captures() {
  static std::vector<std::shared_ptr<FakeCapture>> all;
  return all;
}

bool breaks_capture() {
  bool found = false;
  for (const auto& capture : captures())
    if (capture->thread == std::this_thread::get_id()) capture->invalid = found = true;
  return found;
}

cudaError_t enqueue(FakeStream& stream, std::function<void()> work) {
  if (FakeCapture* capture = stream.captured.get()) {
    if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
    if (&stream != capture->origin) capture->unjoined.insert(&stream);
    capture->work.push_back(std::move(work));
    return cudaSuccess;
  }
  FakeCuda& fake = fake_cuda();
  fake.now += FakeCuda::kEnqueueSeconds;
  stream.free_at = std::max(stream.free_at, fake.now) + FakeCuda::kWorkSeconds;
  work();
  return cudaSuccess;
}

}  // namespace gradring::tests
