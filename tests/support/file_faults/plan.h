// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gradring::tests {

/// What happens at an operation.
struct FileFault {
  enum class Kind { none, kill_before, kill_after, error, half, command };
  Kind kind = Kind::none;
  int error = 0;         ///< errno of Kind::error
  std::string record{};  ///< what record_end() writes when the call has ended; empty if nothing
};

/// Counts an operation of this process on a file, records it, and says whether it is the one that fails.
///
/// From the environment:
///   GRADRING_FILE_FAULTS_BELOW    the folder, an absolute path, below which operations count; without it none does
///   GRADRING_FILE_FAULTS_RECORD   a file that gets a line "PROCESS OPERATION PATH NTH RESULT" for each when it has ended.
///                                 RESULT is "ok" or "failed", of fsync "BYTES ok" with the size of the file. Where one is
///                                 to fail, only "PROCESS OPERATION PATH NTH" of that one, before it begins
///   GRADRING_FILE_FAULT           "PROCESS OPERATION PATH NTH" and the fault: kill-before, kill-after, half, EIO, ENOSPC,
///                                 EINTR,
///                                 EINVAL, or "full": from there on whatever needs space fails with ENOSPC; or "command":
///                                 what another process does just before it
///   GRADRING_FILE_FAULT_COMMAND   the shell command of "command"
///
/// PROCESS is rank0, rank1, ... (with #1 after its first restart), launcher, or child: a child of the launcher that
/// executes no other program. PATH is relative to the folder, with * for the drawn end of a temporary name, NTH counts
/// from 1 the same operations on the same path in this process, so that a line means the same in the next run.
///
/// Threads   safe from any. errno stays as it is.
FileFault next_fault(std::string_view operation, std::string_view path) noexcept;

/// The same for a path as a system call takes it, relative to the folder of the descriptor `at`.
FileFault next_fault_at(std::string_view operation, int at, const char* path) noexcept;

/// The same for an open file.
FileFault next_fault_of(std::string_view operation, int fd) noexcept;

/// Runs GRADRING_FILE_FAULT_COMMAND, in whose processes no operation counts, and waits for it.
void run_command() noexcept;

/// Records how an operation has ended.
void record_end(const FileFault& fault, std::string_view result) noexcept;

}  // namespace gradring::tests
