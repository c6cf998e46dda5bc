// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/cudart/host_uses.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include "kernels/simulated_gpu/cudart/runtime.h"

namespace gradring::simulated_gpu {
namespace {

std::atomic<HostUses*> of_process{nullptr};
struct sigaction action_before;

/// A thread that is performing work, or a call of CUDA's, is the simulated GPU.
bool is_host() {
  const HostThread& thread = this_thread();
  return thread.has_called && !thread.in_call;
}

/// Another fault is for the handler before this one; without one, it ends the process where it happens again.
void give_to_handler_before(int number, siginfo_t* info, void* context) {
  if ((action_before.sa_flags & SA_SIGINFO) != 0) return action_before.sa_sigaction(number, info, context);
  if (action_before.sa_handler != SIG_DFL && action_before.sa_handler != SIG_IGN)
    return action_before.sa_handler(number);
  ::sigaction(number, &action_before, nullptr);
  const bool was_sent = info->si_code <= 0;  // by a process, not by an instruction
  if (was_sent) (void)::raise(number);
}

void on_fault(int number, siginfo_t* info, void* context) {
  const int error = errno;
  HostUses* const uses = of_process;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (!uses || !uses->let_access(address)) {
    if (uses) uses->note_fault(address);
    give_to_handler_before(number, info, context);
  }
  errno = error;
}

void install_handler() {
  struct sigaction action {};
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGSEGV, &action, &action_before);
}

}  // namespace

HostUses::HostUses(Listener listener)
    : listener_(std::move(listener)), page_(static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE))) {
  of_process = this;
  static std::once_flag installed;
  std::call_once(installed, install_handler);
}

HostUses::~HostUses() {
  for (const Target& target : targets_) set(target.address, target.bytes, PROT_READ | PROT_WRITE);
  for (const auto& [page, is_open] : pages_of_kernels_) set(page, page_, PROT_READ | PROT_WRITE);
  of_process = nullptr;
}

bool HostUses::set(std::uintptr_t address, std::size_t bytes, int protection) const {
  const std::uintptr_t begin = address / page_ * page_;
  const std::uintptr_t end = (address + bytes + page_ - 1) / page_ * page_;
  return ::mprotect(reinterpret_cast<void*>(begin), end - begin, protection) == 0;
}

void HostUses::begin(const Target& target) {
  const std::lock_guard lock(mutex_);
  targets_.push_back(target);
  for (std::uintptr_t page = target.address / page_ * page_; page < target.address + target.bytes; page += page_)
    pages_.insert(page);
  set(target.address, target.bytes, PROT_NONE);
}

void HostUses::end(std::uintptr_t address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      targets_, [&](const Target& target) { return target.address == address && target.bytes == bytes; });
  if (found == targets_.end()) return;
  targets_.erase(found);
  set(address, bytes, PROT_READ | PROT_WRITE);
  opened_ = true;  // another target may be on the same page
}

void HostUses::add_page_of_kernels(std::uintptr_t address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  for (std::uintptr_t page = address / page_ * page_; page < address + bytes; page += page_) {
    pages_.insert(page);
    const auto at = pages_of_kernels_.try_emplace(page, true).first;
    if (std::exchange(at->second, false)) set(page, page_, PROT_NONE);
  }
}

void HostUses::protect_again() {
  if (!opened_.exchange(false)) return;
  const std::lock_guard lock(mutex_);
  for (const Target& target : targets_) set(target.address, target.bytes, PROT_NONE);
  for (auto& [page, is_open] : pages_of_kernels_)
    if (std::exchange(is_open, false)) set(page, page_, PROT_NONE);
}

void HostUses::forget(std::uintptr_t address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  std::erase_if(targets_, [&](const Target& target) { return target.address - address < bytes; });
  pages_.erase(pages_.lower_bound(address), pages_.lower_bound(address + bytes));
  pages_of_kernels_.erase(pages_of_kernels_.lower_bound(address), pages_of_kernels_.lower_bound(address + bytes));
}

bool HostUses::let_access(std::uintptr_t address) {
  std::optional<Target> used;
  bool is_of_kernels = false;
  {
    const std::lock_guard lock(mutex_);
    const std::uintptr_t page = address / page_ * page_;
    if (!pages_.contains(page)) return false;
    if (!set(page, page_, PROT_READ | PROT_WRITE)) return false;
    opened_ = true;
    const auto of_kernels = pages_of_kernels_.find(page);
    is_of_kernels = of_kernels != pages_of_kernels_.end();
    if (is_of_kernels) of_kernels->second = true;  // without allocating: the thread may be within an allocator
    const auto found =
        std::ranges::find_if(targets_, [&](const Target& target) { return address - target.address < target.bytes; });
    if (found != targets_.end() && is_host()) {
      used = *found;
      targets_.erase(found);
    }
  }
  if (used)
    listener_.uses_target(*used);
  else if (is_of_kernels && is_host())
    listener_.uses_page(address);
  return true;
}

void HostUses::note_fault(std::uintptr_t address) const {
  if (listener_.faults && is_host()) listener_.faults(address);
}

}  // namespace gradring::simulated_gpu
