// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/cudart/runtime.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <utility>

#include "kernels/simulated_gpu/cudart/host_stack.h"
#include "kernels/simulated_gpu/cudart/kernel_table.h"

namespace gradring::simulated_gpu {
namespace {

constexpr int kMostDevices = 64;
constexpr unsigned kMostThreads = 1024;
/// How long a process that ends waits for work that is being performed.
constexpr std::chrono::milliseconds kPatience(1000);

/// Never destroyed: other threads may use it until the process ends.
struct Process {
  std::mutex mutex;
  SimulationOptions options;
  Runtime* runtime = nullptr;
  bool ends_by_itself = true;
  bool is_left_to_parent = false;
  std::atomic<std::uint64_t> restarts{0};
};

Process& process() {
  static auto* const only = new Process;
  return *only;
}

void end_by_itself() { end_of_process(); }

/// The GPUs of a machine that the environment lets a process see: CUDA_VISIBLE_DEVICES is a list of numbers, which ends
/// at the first that no GPU has.
std::vector<int> visible(int devices) {
  std::vector<int> numbers;
  const char* const list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!list) {
    for (int number = 0; number < devices; ++number) numbers.push_back(number);
    return numbers;
  }
  std::istringstream words(list);
  for (int number = 0; words >> number && number >= 0 && number < devices; words.ignore()) numbers.push_back(number);
  return numbers;
}

void check_options(const SimulationOptions& options) {
  card_of(options.card);
  check(options.devices >= 1 && options.devices <= kMostDevices,
        joined("simulated devices must be 1 to ", kMostDevices));
  check(options.threads >= 1 && options.threads <= kMostThreads,
        joined("threads of a simulated GPU must be 1 to ", kMostThreads));
  const FindingLog valid(options.findings);  // throws for suppressions that cannot be read
}

void print(const Finding& finding) {
  std::string text = text_of(finding);
  for (const std::string& frame : finding.host_stack) text += "\n   called by " + frame;
  std::fprintf(stderr, "simulated GPU: %s\n", text.c_str());
}

}  // namespace

HostThread& this_thread() {
  static thread_local HostThread thread;
  static thread_local std::uint64_t seen_restarts = 0;
  if (const std::uint64_t restarts = process().restarts; seen_restarts != restarts) {
    seen_restarts = restarts;
    thread = {};
  }
  return thread;
}

Runtime::Runtime(const SimulationOptions& wanted)
    : options(wanted),
      card(card_of(wanted.card)),
      faults(wanted.findings, &print),
      memory(wanted.checks_races, wanted.pageable),
      host_uses({.uses_target = [this](const HostUses::Target& target) { fail_for_target(target); },
                 .uses_page = [this](std::uintptr_t address) { note_host_use(address); },
                 .faults = [this](std::uintptr_t address) { addresses.print_access_to_freed(address); }}),
      seed(wanted.seed),
      scheduler(wanted.seed, wanted.hold) {
  // As an H100 has them.
  limits[cudaLimitStackSize] = 1024;
  limits[cudaLimitPrintfFifoSize] = std::size_t{1} << 20;
  limits[cudaLimitMallocHeapSize] = std::size_t{8} << 20;
  limits[cudaLimitDevRuntimeSyncDepth] = 2;
  limits[cudaLimitDevRuntimePendingLaunchCount] = 2048;
  limits[cudaLimitMaxL2FetchGranularity] = 64;
  limits[cudaLimitPersistingL2CacheSize] = 0;
  if (faults.goes_on())
    memory.report_races(
        [this](const std::string& users, const std::string& text, const CodeLocation& before, const CodeLocation& now) {
          const FindingKey key{.kind = FindingKind::stream_race, .detail = users};
          const auto& [one, other] = now.kernel.empty() ? std::tie(before, now) : std::tie(now, before);
          if (faults.is_new(key))
            faults.add(key, {.kind = key.kind,
                             .severity = severity_of(key.kind),
                             .kernel = one.kernel,
                             .file = one.file,
                             .line = one.line,
                             .instruction = one.instruction,
                             .other = other,
                             .text = text});
        });
  for (const int number : visible(options.devices))
    devices.emplace_back(card, static_cast<int>(devices.size()), number, faults);
  if (options.on_finding != nullptr) faults.record(options.on_finding);
  if (options.counts) counting.begin();
  if (options.is_strict) {  // other programs may give such memory to system calls
    memory.watch_pinned(
        [this](std::uint64_t address, std::size_t bytes) { host_uses.add_page_of_kernels(address, bytes); });
    return;
  }
  for (Device& each : devices) each.note_host_stacks();
  faults.ask_host_stack([this](const Finding& finding) -> std::vector<std::string> {
    if (finding.kind == FindingKind::misuse || finding.kind == FindingKind::mistake) return HostStack::here().texts();
    for (const Device& each : devices)
      if (const HostStack* const origin = each.origin()) return origin->texts();
    return {};
  });
}

void Runtime::fail_for_target(const HostUses::Target& target) {
  Device& failing = device(target.device);
  if (failing.failure() != cudaSuccess) return;
  failing.fail(cudaErrorIllegalAddress, "the host uses " + memory.describe(target.address, target.bytes) +
                                            ", before cudaMemcpyAsync has written them: wait for the copy first");
}

void Runtime::note_host_use(std::uintptr_t address) {
  const GlobalMemory::Block* const block = memory.find(address, 1);
  if (!block) return;
  OrderedWork use = scheduler.host_use();
  current_work = &use;
  try {
    memory.note_use(address, 1, false, "the host");
  } catch (const Fault& fault) {
    device(block->device).fail(cudaErrorIllegalAddress, fault.what());
  }
  current_work = nullptr;
}

Runtime& runtime() {
  Process& own = process();
  const std::lock_guard lock(own.mutex);
  if (!own.runtime) {
    own.runtime = new Runtime(own.options);
    static const int registered = own.ends_by_itself ? std::atexit(end_by_itself) : 0;
    (void)registered;
  }
  return *own.runtime;
}

Runtime* end_of_process() {
  Process& own = process();
  {
    const std::lock_guard lock(own.mutex);
    if (!own.runtime) return nullptr;
  }
  Runtime& rt = *own.runtime;
  if (this_thread().in_host_function) {  // which the work that this thread performs would have to end first
    rt.faults.add(FindingKind::misuse, "exit: a call by a function that cudaLaunchHostFunc enqueued");
    return &rt;
  }
  if (!rt.options.is_strict) rt.scheduler.wait_for_all();  // a GPU would have begun what is enqueued
  rt.scheduler.stop(kPatience);
  const std::lock_guard lock(rt.mutex);
  rt.report_leaks();
  return &rt;
}

bool leave_to_parent() { return process().is_left_to_parent = process().runtime != nullptr; }

bool is_left_to_parent() { return process().is_left_to_parent; }

void leave_end_to_caller() {
  Process& own = process();
  const std::lock_guard lock(own.mutex);
  own.ends_by_itself = false;
}

void configure(const SimulationOptions& options) {
  check_options(options);
  Process& own = process();
  const std::lock_guard lock(own.mutex);
  own.options = options;
}

void restart(const SimulationOptions& options) {
  configure(options);
  Process& own = process();
  const std::lock_guard lock(own.mutex);
  delete std::exchange(own.runtime, nullptr);
  forget_failures();
  ++own.restarts;
}

void Runtime::reseed(std::uint64_t other) {
  seed = other;
  launches = 0;
  scheduler.reseed(other);
}

const Allocation* Runtime::allocation_of(const void* address) const {
  const auto next = allocations.upper_bound(const_cast<void*>(address));
  if (next == allocations.begin()) return nullptr;
  const auto& [begin, block] = *std::prev(next);
  return static_cast<std::size_t>(static_cast<const char*>(address) - static_cast<const char*>(begin)) < block.bytes
             ? &block
             : nullptr;
}

const std::vector<std::uint64_t>& Runtime::variables(const ptx::Module& module, int device) {
  const std::vector<std::uint64_t>& made = modules.variables(module, device);
  for (const KernelTable::ManagedVariable& variable : kernel_table().managed_variables(module))
    if (const auto index = module.variable_named(variable.name)) *variable.slot = reinterpret_cast<void*>(made[*index]);
  return made;
}

Scheduler::WorkPtr Runtime::enqueue(Stream& stream, StreamWork work) {
  order_with_default(stream);
  StreamWork guarded = device(stream.device).guarded(std::move(work));
  if (stream.capture) {
    stream.capture->add(stream, std::move(guarded));
    return nullptr;
  }
  if (guarded.enqueued) guarded.enqueued();
  const Scheduler::WorkPtr before = stream.tail;
  stream.tail = scheduler.enqueue({.run = counting.counted(guarded, stream.device),
                                   .on_host = guarded.on_host,
                                   .lane = stream.lane,
                                   .overlaps = guarded.begins_early ? before : nullptr},
                                  {&before, 1});
  return stream.tail;
}

void Runtime::reset(int device) {
  report_leaks("at cudaDeviceReset", device);
  const auto remove = [&](auto& handles, const auto& device_of) {
    std::erase_if(handles.all(), [&](const auto& entry) { return device_of(entry.second) == device; });
  };
  std::erase_if(captures, [&](const std::shared_ptr<Capture>& capture) { return capture->device() == device; });
  for (auto& [number, stream] : streams.all())
    if (stream.device == device && stream.capture) stream.capture->leave(stream);
  default_streams.for_each([&](Stream& stream) {
    if (stream.device == device && stream.capture) std::exchange(stream.capture, nullptr)->leave(stream);
  });
  remove(streams, [](const Stream& stream) { return stream.device; });
  remove(events, [](const Event& event) { return event.device; });
  remove(pools, [](const Pool& pool) { return pool.device; });
  default_pools.erase(device);
  remove(executables, [](const GraphExecutable& graph) { return graph.recipe->device; });
  remove(graphs, [](const Graph& graph) { return graph.recipe.device; });
  for (auto& [data, allocation] : allocations) {
    if (allocation.is_freed || allocation.device != device) continue;
    allocation.is_freed = true;
    host_uses.forget(reinterpret_cast<std::uintptr_t>(data), allocation.bytes);
    memory.remove(data);
    if (allocation.kind != Allocation::Kind::registered) addresses.release(data);
    if (allocation.use) allocation.use->used = allocation.use->reserved = 0;
  }
  modules.forget(device);
}

void Runtime::report_leaks(const char* when, std::optional<int> device) {
  for (const Device& each : devices)
    if (each.failure() != cudaSuccess) return;
  const auto is_meant = [device](int of_device) { return !device || of_device == *device; };
  const auto report = [&](const auto& handles, const auto& device_of, const char* what, std::size_t kept = 0) {
    const auto count = static_cast<std::size_t>(
        std::ranges::count_if(handles.all(), [&](const auto& entry) { return is_meant(device_of(entry.second)); }));
    if (count > kept) faults.add(FindingKind::leak, joined(when, ", not given back: ", count - kept, " of ", what));
  };
  report(
      streams, [](const Stream& stream) { return stream.device; }, "cudaStreamCreateWithFlags");
  report(
      events, [](const Event& event) { return event.device; }, "cudaEventCreateWithFlags");
  report(
      pools, [](const Pool& pool) { return pool.device; }, "cudaMemPoolCreate",
      device ? default_pools.count(*device) : default_pools.size());
  report(
      graphs, [](const Graph& graph) { return graph.recipe.device; }, "cudaStreamEndCapture");
  report(
      executables, [](const GraphExecutable& graph) { return graph.recipe->device; }, "cudaGraphInstantiate");
  struct Left {
    std::size_t blocks = 0, bytes = 0;
  };
  std::map<Allocation::Kind, Left> left;
  for (const auto& [data, allocation] : allocations) {
    if (allocation.is_freed || !is_meant(allocation.device)) continue;
    ++left[allocation.kind].blocks;
    left[allocation.kind].bytes += allocation.bytes;
  }
  const auto report_memory = [&](Allocation::Kind kind, const char* what) {
    if (left[kind].blocks > 0)
      faults.add(FindingKind::leak,
                 joined(when, ", not given back: ", left[kind].blocks, " of ", what, ", ", left[kind].bytes, " bytes"));
  };
  report_memory(Allocation::Kind::device, "cudaMalloc");
  report_memory(Allocation::Kind::pool, options.is_strict ? "cudaMallocFromPoolAsync" : "cudaMallocAsync");
  report_memory(Allocation::Kind::pinned, "cudaHostAlloc");
  report_memory(Allocation::Kind::registered, "cudaHostRegister");
  report_memory(Allocation::Kind::managed, "cudaMallocManaged");
}

cudaError_t misused_after_fork(const char* name) {
  const Finding finding{
      .kind = FindingKind::misuse,
      .text = joined(name, ": a call in a child process, forked after CUDA was used, which CUDA forbids (",
                     error_name(cudaErrorInitializationError), ")")};
  static std::atomic<bool> is_known{false};
  if (!is_known.exchange(true)) {
    print(finding);
    if (const auto on_finding = process().options.on_finding) on_finding(json_of(finding));
  }
  return noted(cudaErrorInitializationError);
}

}  // namespace gradring::simulated_gpu

extern "C" __attribute__((visibility("default"))) const gradring::simulated_gpu::SimulatedGpu*
gradring_simulated_gpu() {
  using namespace gradring::simulated_gpu;
  static const SimulatedGpu simulated_gpu = {
      .configure = &configure,
      .check_program = [] { kernel_table().check_card(card_of(process().options.card)); },
      .faults = [] { return runtime().faults.texts(); },
      .watch = [](const void* data,
                  std::size_t bytes) { runtime().memory.watch().begin(reinterpret_cast<std::uintptr_t>(data), bytes); },
      .watched =
          [] {
            WriteWatch::Writes writes = runtime().memory.watch().writes();
            return WatchedWrites{writes.count, std::move(writes.last)};
          },
      .launches = [] { return runtime().launches.load(); },
      .repeat_from = [](std::uint64_t launch) { runtime().launches = launch; },
      .begin_counting =
          [](bool lists) {
            Runtime& rt = runtime();
            const std::lock_guard lock(rt.mutex);
            rt.counting.begin(lists);
          },
      .end_counting =
          [] {
            Runtime& rt = runtime();
            rt.scheduler.wait_for_all();
            const std::lock_guard lock(rt.mutex);
            return rt.counting.end();
          }};
  return &simulated_gpu;
}
