// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gradring {

/// Exit codes of gradring processes. After those above 128 a retry may succeed.
enum ExitCode : int {
  kOk = 0,
  kTrainingFailed = 1,
  kUsage = 2,
  kEnvironment = 3,
  kBadData = 4,
  kDiverged = 5,
  kCannotExecute = 126,  ///< the launcher's, as in a shell: the program cannot be executed
  kNotFound = 127,       ///< the launcher's, as in a shell: the program does not exist
  kBrokenPipe = 141,     ///< the reader closed standard output (128 + SIGPIPE)
  kPreempted = 143,      ///< after a checkpoint, on request (128 + SIGTERM)
  kPeerLost = 161,
  kTimeout = 162,
  kReplicasDiffer = 163,
};

/// An error that carries the exit code of the process that it ends.
class HasExitCode {
 public:
  virtual ExitCode exit_code() const noexcept = 0;

 protected:
  ~HasExitCode() = default;
};

/// A second base of error classes: `class PeerLost : public CommError, public ExitsWith<kPeerLost>`.
template <ExitCode kCode>
class ExitsWith : public HasExitCode {
 public:
  ExitCode exit_code() const noexcept override { return kCode; }

 protected:
  ~ExitsWith() = default;
};

/// Root of every exception that gradring throws at host level. The message says what was asked, what was found, and
/// what to do. Errors of a package derive from it where the package can name more (comm::CommError, data::DataError,
/// ...).
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The caller asked for something that can never work: a negative size, an unknown name, shapes that do not fit.
class InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// The device, or this machine's set-up of it, cannot do what was asked: no such device, no memory, a failed launch.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// Throws E with `message` and the call site appended, unless `condition` holds.
///
/// Errors    E (InvalidArgument if not given).
/// Example   check(batch > 0, "batch must be positive");
template <class E = InvalidArgument>
void check(bool condition, std::string_view message, std::source_location where = std::source_location::current()) {
  if (condition) [[likely]]
    return;
  throw E(std::string(message) + " [" + where.file_name() + ":" + std::to_string(where.line()) + "]");
}

/// The same for a message that takes time to build: `message()` is called if the condition does not hold.
///
/// Example   check(axis < rank, [&] { return "axis is " + std::to_string(axis); })
template <class E = InvalidArgument, std::invocable Message>
void check(bool condition, const Message& message, std::source_location where = std::source_location::current()) {
  if (!condition) [[unlikely]]
    check<E>(false, std::string_view(message()), where);
}

}  // namespace gradring
