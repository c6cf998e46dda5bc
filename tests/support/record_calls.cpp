// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD (scripts/trace_walks.sh): writes the calls of a program compiled with -finstrument-functions
// to RECORDED_CALLS/PID, as three 64-bit numbers: nanoseconds, thread, address of the function in the program. Of
// repeated calls within 5 ms it writes only the first. The file begins with the number of calls and two zeros. It is a
// shared mapping, so it is complete if the process is killed.
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>

namespace {

struct Call {
  std::uint64_t nanoseconds, thread, address;
};
constexpr std::uint64_t kMostCalls = 1ULL << 24;
constexpr std::uint64_t kLoopNanoseconds = 5'000'000;

Call* open_calls() {
  const char* folder = std::getenv("RECORDED_CALLS");
  if (folder == nullptr) return nullptr;
  const int fd =
      ::open((std::string(folder) + "/" + std::to_string(::getpid())).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ::ftruncate(fd, kMostCalls * sizeof(Call)) != 0) return nullptr;
  void* memory = ::mmap(nullptr, kMostCalls * sizeof(Call), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  return memory == MAP_FAILED ? nullptr : static_cast<Call*>(memory);
}

std::uint64_t base_of_program() {
  std::uint64_t base = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* program, std::size_t, void* out) {
        *static_cast<std::uint64_t*>(out) = program->dlpi_addr;
        return 1;  // the first is the program
      },
      &base);
  return base;
}

}  // namespace

extern "C" void __cyg_profile_func_enter(void* function, void* /*call_site*/) {
  static Call* const calls = open_calls();
  static const std::uint64_t base = base_of_program();
  if (calls == nullptr) return;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const Call call{
      .nanoseconds = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec),
      .thread = static_cast<std::uint64_t>(::pthread_self()),
      .address = reinterpret_cast<std::uint64_t>(function) - base};
  // One of the calls that a loop makes is enough.
  static thread_local std::array<Call, 4096> recent;
  Call& last = recent[call.address / 16 % recent.size()];
  if (last.address == call.address && call.nanoseconds - last.nanoseconds < kLoopNanoseconds) return;
  last = call;
  const std::uint64_t i = std::atomic_ref(calls->nanoseconds).fetch_add(1) + 1;
  if (i < kMostCalls) calls[i] = call;
}

extern "C" void __cyg_profile_func_exit(void* /*function*/, void* /*call_site*/) {}
