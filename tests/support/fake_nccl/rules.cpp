// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_nccl/rules.h"

#include <fmt/format.h>

namespace gradring::tests {
namespace {

/// Whether the operation writes memory that the other reads or writes.
bool writes_what_is_used(const Operation& writer, const Operation& other) {
  const auto overlaps = [&](const void* used) {
    const auto* const written = static_cast<const std::byte*>(writer.to);
    const auto* const begin = static_cast<const std::byte*>(used);
    return written && begin && begin < written + bytes_of(writer) && written < begin + bytes_of(other);
  };
  if (&writer == &other) return writer.to != writer.from && overlaps(other.from);  // in place is allowed
  return overlaps(other.from) || overlaps(other.to);
}

}  // namespace

// Reported by NCCL.

/// ncclInvalidArgument: a non-blocking communicator takes no call before ncclCommGetAsyncError has returned success for
/// the last one (init.cc, ncclCommEnsureReady).
Wrong in_progress(bool settled) {
  if (settled) return {};
  return "Attempt to use communicator before the previous operation returned ncclSuccess";
}

/// ncclInvalidUsage: a revoked communicator takes no operations (nccl.h, ncclCommRevoke).
Wrong revoked(const ncclComm& comm) {
  if (!comm.revoked) return {};
  return "the communicator is revoked";
}

/// ncclInvalidArgument: the configuration must come from NCCL_CONFIG_INITIALIZER, and `blocking` be 0, 1 or undefined
/// (init.cc, parseCommConfig).
Wrong invalid_config(const ncclConfig_t& config) {
  if (config.magic != 0xcafebeef) return "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER";
  if (config.blocking != 0 && config.blocking != 1 && config.blocking != NCCL_CONFIG_UNDEF_INT)
    return fmt::format("Invalid config blocking attribute value {}", config.blocking);
  return {};
}

/// ncclInvalidUsage: the ranks of a communicator have different GPUs (init.cc, "Duplicate GPU detected"). A rank that
/// forgets to make its own current initializes on device 0.
Wrong same_gpu(const ncclComm& one, const ncclComm& other) {
  if (one.clique != other.clique || one.rank == other.rank || one.device != other.device) return {};
  return fmt::format("Duplicate GPU detected : rank {} and rank {} both on CUDA device {}", one.rank, other.rank,
                     one.device);
}

/// ncclUnhandledCudaError: a kernel of the communicator's device cannot be launched on a stream of another
/// (cudaErrorInvalidResourceHandle).
Wrong stream_of_another_gpu(const Operation& operation) {
  const int stream = operation.stream->gpu().index();
  if (stream == operation.comm->device) return {};
  return fmt::format("Cuda failure 'invalid resource handle': stream of device {}, communicator of device {}", stream,
                     operation.comm->device);
}

/// ncclInvalidArgument: blocking and non-blocking communicators do not share a group (group.h, ncclGroupCommJoin).
Wrong mixes_blocking(const std::vector<Operation>& group) {
  for (const Operation& operation : group)
    if (operation.comm->blocking != group.front().comm->blocking)
      return "Blocking and nonblocking communicators are not allowed in the same group";
  return {};
}

// Not noticed by NCCL.

/// Accesses freed memory (nccl.h: a destroyed or aborted communicator must not be used).
Wrong freed(const ncclComm& comm) {
  if (!comm.freed) return {};
  return fmt::format("rank {} uses a communicator that was freed", comm.rank);
}

/// Takes half a gigabyte of another GPU: NCCL restores the device that was current by cudaSetDevice (group.cc,
/// ncclGroupEndInternal), which makes a context there. A new thread has device 0.
Wrong frees_with_another_device(const ncclComm& comm, int current) {
  if (comm.device == current) return {};
  return fmt::format("rank {} frees its communicator of device {} while device {} is current", comm.rank, comm.device,
                     current);
}

/// The graph's kernels use freed memory: after a revoke, NCCL does not wait for graphs (init.cc, commReclaim).
Wrong frees_under_a_graph(const ncclComm& comm) {
  if (!comm.revoked || comm.graphs == 0) return {};
  return fmt::format("rank {} frees its revoked communicator while a graph refers to it", comm.rank);
}

/// Deadlocks where both ranks send first: outside of a group, each call is a group of its own, and the next one on the
/// stream waits for it (User Guide, "Point-to-point communication").
Wrong outside_of_group(int depth) {
  if (depth > 0) return {};
  return "a call outside of a group: it blocks until its peer's call";
}

/// Has no effect on what NCCL has read before, since it keeps each value (param.cc, ncclLoadParam). It reads the first
/// ones in ncclGetUniqueId and ncclCommInitRankConfig.
Wrong set_too_late(int rank, const Environment& environment, const std::string& name, const std::string& value) {
  const auto before = environment.variables.find(name);
  if (!environment.read || (before != environment.variables.end() && before->second == value)) return {};
  return fmt::format("rank {} sets {} after NCCL has read its environment", rank, name);
}

/// Computes wrongly: the operations of a group run concurrently, in no order (User Guide, "Group Calls"), so nothing
/// else may touch what one of them writes. A collective is in place only if both buffers are the same (User Guide,
/// "In-place Operations").
Wrong overlapping_buffers(const std::vector<Operation>& group) {
  for (const Operation& writer : group)
    for (const Operation& other : group)
      if (writes_what_is_used(writer, other))
        return fmt::format("rank {} writes a buffer that the same group uses again", writer.comm->rank);
  return {};
}

/// Records graphs that differ between ranks: what other threads enqueue on a captured stream becomes part of the graph,
/// wherever it falls (CUDA, cudaStreamBeginCapture).
Wrong captured_by_another_thread(const Operation& operation) {
  const auto capture = operation.stream->capture();
  if (!capture || capture->thread == std::this_thread::get_id()) return {};
  return fmt::format("rank {} calls NCCL on a captured stream from another thread than the capturing one",
                     operation.comm->rank);
}

/// Hangs, or sums a stale buffer: each side decides by its own buffer whether data goes directly between the buffers
/// (User Guide, "User Buffer Registration": "undefined behavior"; sendrecv_reg.cc, ncclRegisterP2pIpcBuffer).
Wrong mixed_registration(const Operation& send, const Operation& receive) {
  if (send.registered == receive.registered) return {};
  return fmt::format("mixed registration: rank {} sends {} memory, rank {} receives into {} memory", send.comm->rank,
                     send.registered ? "registered" : "other", receive.comm->rank,
                     receive.registered ? "registered" : "other");
}

/// May hang: both ranks of a message, and all of a collective, capture it into a graph, or none does (User Guide,
/// "Using NCCL with CUDA Graphs": "must be uniform over all ranks").
Wrong mixed_capture(const Operation& one, const Operation& other) {
  if (one.captured == other.captured) return {};
  return fmt::format("rank {} runs as part of a graph what rank {} runs without one",
                     one.captured ? one.comm->rank : other.comm->rank,
                     one.captured ? other.comm->rank : one.comm->rank);
}

/// Hangs, or writes out of bounds: messages have no headers (User Guide, ncclSend: "the same datatype and count").
Wrong mismatched_sizes(const Operation& send, const Operation& receive) {
  if (send.count == receive.count && send.type == receive.type) return {};
  return fmt::format("rank {} receives {} {} from rank {}, which sends {} {}", receive.comm->rank, receive.count,
                     name_of(dtype_of(receive.type)), send.comm->rank, send.count, name_of(dtype_of(send.type)));
}

/// Hangs, or sums what was not sent: the ranks of a collective pass the same count and type (User Guide, "Collective
/// Operations").
Wrong mismatched_reductions(const Operation& one, const Operation& other) {
  if (one.count == other.count && one.type == other.type) return {};
  return fmt::format("rank {} reduces {} {}, but rank {} reduces {} {}", one.comm->rank, one.count,
                     name_of(dtype_of(one.type)), other.comm->rank, other.count, name_of(dtype_of(other.type)));
}

}  // namespace gradring::tests
