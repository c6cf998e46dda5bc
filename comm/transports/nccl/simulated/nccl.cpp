// SPDX-License-Identifier: Apache-2.0
// NCCL's functions for ranks that are processes of one machine, on the streams of nccl_api.h: a message is a file. They
// need no memory or network that the processes share. Where NCCL would hang or compute wrongly because of a call's
// elements, the call's work fails with a message that names it; what else NCCL forbids is checked by
// tests/support/fake_nccl.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/transport/sum.h"
#include "comm/transports/nccl/nccl_api.h"
#include "kernels/base/error.h"

namespace {

namespace fs = std::filesystem;
using gradring::comm::nccl::dtype_of;
using gradring::kernels::DType;

constexpr std::chrono::microseconds kNap(100);

/// The elements of a call, of which both ranks of a message and all ranks of a collective must give the same.
struct Elements {
  std::size_t count = 0;
  DType dtype = DType::u8;

  std::size_t bytes() const { return count * size_of(dtype); }
  std::string text() const { return std::to_string(count) + " " + std::string(name_of(dtype)); }
  bool operator==(const Elements&) const = default;
};

struct Message {
  Elements elements;
  std::vector<std::byte> bytes;
};

/// What a rank's communicator shares with the work of its streams.
struct Member {
  fs::path folder;  // of the group
  int rank = 0;
  int world_size = 1;
  std::atomic<bool> aborted{false};
  std::atomic<ncclResult_t> error{ncclInProgress};  // until all ranks are there
  std::mutex mutex;
  std::map<std::pair<int, int>, int> messages;  // so far, by sender and receiver
  int reductions = 0;
  std::vector<fs::path> last_parts;  // what this rank gave to the sums of the last group

  /// Names of files, given when work runs: a graph sends another message at each launch.
  std::string next_message(int from, int to) {
    const std::lock_guard lock(mutex);
    return std::to_string(from) + "-" + std::to_string(to) + "-" + std::to_string(messages[{from, to}]++);
  }
  std::string next_reduction() {
    const std::lock_guard lock(mutex);
    return "sum-" + std::to_string(reductions++);
  }

  /// Announces that this rank has joined, or left.
  bool announce(const std::string& what) const { return bool(std::ofstream(folder / (what + std::to_string(rank)))); }
  bool have_all(const std::string& what) const {
    for (int who = 0; who < world_size; ++who)
      if (!fs::exists(folder / (what + std::to_string(who)))) return false;
    return true;
  }
  /// All ranks have begun a later group, so each has read these.
  void replace_parts(std::vector<fs::path> parts) {
    const std::lock_guard lock(mutex);
    std::error_code ignored;
    for (const fs::path& part : std::exchange(last_parts, std::move(parts))) fs::remove(part, ignored);
  }
  void put(const fs::path& name, const Elements& elements, const void* data) {
    const fs::path draft = folder / (name.string() + ".draft");
    std::ofstream file(draft, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&elements), sizeof elements);
    file.write(static_cast<const char*>(data), static_cast<std::streamsize>(elements.bytes()));
    file.close();
    std::error_code failed;
    if (file) fs::rename(draft, folder / name, failed);
    if (!file || failed) error = ncclSystemError;
  }
  /// Waits for the message; nothing after an abort.
  std::optional<Message> take(const fs::path& name) {
    const fs::path path = folder / name;
    while (!aborted && !fs::exists(path)) std::this_thread::sleep_for(kNap);
    if (aborted) return std::nullopt;
    Message message;
    std::ifstream file(path, std::ios::binary);
    file.read(reinterpret_cast<char*>(&message.elements), sizeof message.elements);
    message.bytes.resize(message.elements.bytes());
    file.read(reinterpret_cast<char*>(message.bytes.data()), static_cast<std::streamsize>(message.bytes.size()));
    return message;
  }
};

struct Operation {
  enum class Kind { send, receive, all_reduce };
  Kind kind = Kind::send;
  std::shared_ptr<Member> member;
  const void* from = nullptr;
  void* to = nullptr;
  Elements elements;
  ncclRedOp_t reduction = ncclSum;
  int peer = 0;
  std::string message = {};  // its file, while it runs

  const char* call() const {
    if (kind == Kind::send) return "ncclSend";
    return kind == Kind::receive ? "ncclRecv" : "ncclAllReduce";
  }
  std::string part_of(int rank) const { return message + "-" + std::to_string(rank); }
};

struct Group {
  int depth = 0;
  std::map<cudaStream_t, std::vector<Operation>> operations;
};
thread_local Group group;

/// Gives the operation its message, and checks its memory. `to` is written from now on, also if an abort comes first:
/// NCCL leaves there whatever has come, and what was enqueued behind still reads it.
void start(Operation& operation) {
  Member& member = *operation.member;
  switch (operation.kind) {
    case Operation::Kind::send: operation.message = member.next_message(member.rank, operation.peer); break;
    case Operation::Kind::receive: operation.message = member.next_message(operation.peer, member.rank); break;
    case Operation::Kind::all_reduce: operation.message = member.next_reduction(); break;
  }
  if (operation.reduction != ncclSum)
    throw gradring::DeviceError(std::string(operation.call()) +
                                ": a reduction that is not simulated: expected ncclSum");
  if (operation.kind != Operation::Kind::receive)
    gradring::comm::nccl::note_use(operation.call(), operation.from, operation.elements.bytes(), false);
  if (operation.kind != Operation::Kind::send)
    gradring::comm::nccl::note_use(operation.call(), operation.to, operation.elements.bytes(), true);
  if (operation.kind == Operation::Kind::send) member.put(operation.message, operation.elements, operation.from);
  if (operation.kind == Operation::Kind::all_reduce)
    member.put(operation.part_of(member.rank), operation.elements, operation.from);
}

/// What `peer` put into the file `name` for this operation; nothing after an abort.
///
/// Errors    DeviceError if it gives other elements.
std::optional<Message> take(const Operation& operation, const std::string& name, int peer) {
  std::optional<Message> message = operation.member->take(name);
  if (message && message->elements != operation.elements)
    throw gradring::DeviceError(std::string(operation.call()) + ": rank " + std::to_string(operation.member->rank) +
                                " gives " + operation.elements.text() + ", rank " + std::to_string(peer) + " gives " +
                                message->elements.text());
  return message;
}

void receive(const Operation& operation) {
  const std::optional<Message> message = take(operation, operation.message, operation.peer);
  if (!message) return;
  std::ranges::copy(message->bytes, static_cast<std::byte*>(operation.to));
  fs::remove(operation.member->folder / operation.message);
}

/// NCCL may buffer a small message, so that the send ends at once; a program must not rely on it.
void wait_until_received(const Operation& operation) {
  const Member& member = *operation.member;
  while (!member.aborted && fs::exists(member.folder / operation.message)) std::this_thread::sleep_for(kNap);
}

/// In rank order. The parts stay for the others to read.
void all_reduce(const Operation& operation) {
  std::vector<std::byte> sum;
  for (int rank = 0; rank < operation.member->world_size; ++rank) {
    std::optional<Message> part = take(operation, operation.part_of(rank), rank);
    if (!part) return;
    if (rank == 0)
      sum = std::move(part->bytes);
    else
      gradring::comm::add_into(sum.data(), part->bytes.data(), operation.elements.count, operation.elements.dtype);
  }
  std::ranges::copy(sum, static_cast<std::byte*>(operation.to));
}

/// Work of a stream. All sends leave first, so the order of receives does not matter. It ends when they were received.
void run(std::vector<Operation> operations) {
  for (Operation& operation : operations) start(operation);
  for (const Operation& operation : operations) {
    if (operation.kind == Operation::Kind::receive) receive(operation);
    if (operation.kind == Operation::Kind::all_reduce) all_reduce(operation);
  }
  std::map<Member*, std::vector<fs::path>> parts;
  for (const Operation& operation : operations) {
    Member& member = *operation.member;
    if (operation.kind == Operation::Kind::send) wait_until_received(operation);
    if (operation.kind == Operation::Kind::all_reduce && !member.aborted)
      parts[&member].push_back(member.folder / operation.part_of(member.rank));
  }
  for (auto& [member, given] : parts) member->replace_parts(std::move(given));
}

ncclResult_t add(cudaStream_t stream, Operation operation) {
  if (group.depth == 0) return ncclInvalidUsage;
  group.operations[stream].push_back(std::move(operation));
  return ncclSuccess;
}

}  // namespace

struct ncclComm {
  std::shared_ptr<Member> member = std::make_shared<Member>();
};

#pragma GCC visibility push(default)
extern "C" {

ncclResult_t ncclGetVersion(int* version) { return *version = NCCL_VERSION_CODE, ncclSuccess; }

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSystemError ? "the folder of the simulated NCCL is missing or full"
                                   : "an error of the simulated NCCL";
}

const char* ncclGetLastError(ncclComm_t) { return ""; }

/// In the launcher's folder of the run, which the launcher removes; under others in that for temporary files.
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const char* const store = std::getenv("GRADRING_STORE");
  std::error_code none;
  std::string path = (store ? fs::path(store) : fs::temp_directory_path(none)) / "nccl-XXXXXX";
  if (path.size() >= sizeof id->internal || !::mkdtemp(path.data())) return ncclSystemError;
  *id = {};
  std::memcpy(id->internal, path.data(), path.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int world_size, ncclUniqueId id, int rank, ncclConfig_t*) {
  auto made = std::make_unique<ncclComm>();
  made->member->folder = id.internal;
  made->member->rank = rank;
  made->member->world_size = world_size;
  if (!made->member->announce("joined-")) return ncclSystemError;
  *comm = made.release();
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  if (comm->member->error == ncclInProgress && comm->member->have_all("joined-")) comm->member->error = ncclSuccess;
  *error = comm->member->error;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }

/// The last rank to leave removes the folder.
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  std::error_code ignored;
  if (comm->member->announce("left-") && comm->member->have_all("left-")) fs::remove_all(comm->member->folder, ignored);
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->member->aborted = true;
  return ncclCommDestroy(comm);
}

/// Operations end at once, also those of graphs that are launched later.
ncclResult_t ncclCommRevoke(ncclComm_t comm, int) {
  comm->member->aborted = true;
  comm->member->error = ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (--group.depth > 0) return ncclSuccess;
  for (auto& [stream, operations] : std::exchange(group.operations, {}))
    gradring::comm::nccl::enqueue(stream, [operations = std::move(operations)] { run(operations); });
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(stream, {.kind = Operation::Kind::send,
                      .member = comm->member,
                      .from = from,
                      .elements = {count, dtype_of(type)},
                      .peer = peer});
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(stream, {.kind = Operation::Kind::receive,
                      .member = comm->member,
                      .to = to,
                      .elements = {count, dtype_of(type)},
                      .peer = peer});
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                           ncclComm_t comm, cudaStream_t stream) {
  return add(stream, {.kind = Operation::Kind::all_reduce,
                      .member = comm->member,
                      .from = from,
                      .to = to,
                      .elements = {count, dtype_of(type)},
                      .reduction = reduction});
}

}  // extern "C"
#pragma GCC visibility pop
