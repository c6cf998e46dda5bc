// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/dry_run_device.h"

#include <new>

#include "kernels/base/error.h"

namespace gradring::kernels {
namespace {

constexpr std::size_t kDryRunAlignment = 256;
constexpr std::uintptr_t kFirstAddress = 1 << 20;

class Nothing final : public Buffer::Resource {
 public:
  void release(void*, std::size_t) noexcept override {}
};

class PinnedMemory final : public Buffer::Resource {
 public:
  void release(void* data, std::size_t) noexcept override {
    ::operator delete(data, std::align_val_t(kDryRunAlignment));
  }
};

class ReachedEvent final : public Event {
 public:
  bool reached() const override { return true; }
};

class IdleStream final : public Stream {
 public:
  explicit IdleStream(int device_index) : device_index_(device_index) {}
  void enqueue(std::function<void()>) override {}
  void enqueue_copy(void*, const void*, std::size_t) override {}
  void enqueue_zero(void*, std::size_t) override {}
  void record(Event&) override {}
  void enqueue_wait(const Event&) override {}
  void synchronize(Deadline) override {}
  void* native_handle() override { throw InvalidArgument("a dry-run device cannot launch kernels"); }
  int device_index() const override { return device_index_; }

 private:
  int device_index_;
};

class NoTime final : public Timer {
 public:
  void start(Stream&) override {}
  void stop(Stream&) override {}
  double seconds() const override { return 0; }
};

class EmptyRecording final : public Recording {
 public:
  void enqueue(Stream&) override {}
};

}  // namespace

DryRunDevice::DryRunDevice(const Device& device)
    : device_(device),
      pinned_(std::make_unique<PinnedMemory>()),
      nothing_(std::make_unique<Nothing>()),
      next_address_(kFirstAddress) {}

DryRunDevice::~DryRunDevice() = default;

Buffer DryRunDevice::allocate(std::size_t bytes, MemoryKind kind) {
  if (bytes == 0) return {};
  if (kind == MemoryKind::pinned) return {::operator new(bytes, std::align_val_t(kDryRunAlignment)), bytes, *pinned_};
  const std::size_t room = (bytes + kDryRunAlignment - 1) / kDryRunAlignment * kDryRunAlignment;
  return {reinterpret_cast<void*>(next_address_.fetch_add(room)), bytes, *nothing_};
}

std::unique_ptr<Stream> DryRunDevice::make_stream(StreamMode) {
  return std::make_unique<IdleStream>(device_.id().index);
}

std::unique_ptr<Event> DryRunDevice::make_event() { return std::make_unique<ReachedEvent>(); }

std::unique_ptr<Timer> DryRunDevice::make_timer() { return std::make_unique<NoTime>(); }

std::unique_ptr<Recording> DryRunDevice::record(Stream&, std::function<void()>) {
  return std::make_unique<EmptyRecording>();
}

}  // namespace gradring::kernels
