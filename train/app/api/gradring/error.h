// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace gradring {
inline namespace v1 {

/// The exception that all functions of this API throw. The message is the one that the program `gradring` prints: what
/// failed, the value found, what was expected, and what to do.
///
/// What a Dataset or an Observer of the caller throws leaves the API as it is.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, int exit_code = 1) : std::runtime_error(message), exit_code_(exit_code) {}

  /// The exit code of `gradring` for such an error, as docs/faults.md lists them: 2 for invalid options, models and
  /// shapes, 3 for a missing device or a full disk, 4 for invalid files, 5 if training diverged, 143 if it was stopped
  /// by a signal after it had saved a checkpoint, 161 to 163 for ranks that were lost, timed out or differ, 1 otherwise.
  int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

/// For the end of main(): prints the message on standard error, after the program's name. Under a launcher such as
/// `gradring launch` or torchrun, leaves it for the launcher, which prints the first error of all ranks.
///
/// Returns   error.exit_code().
int report(const Error& error);

}  // namespace v1
}  // namespace gradring
