// SPDX-License-Identifier: Apache-2.0
#include "train/launch/logs/teed_lines.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace gradring::train {
namespace {

/// Longer than the pauses between the writes of one line, short for who waits for a prompt.
constexpr std::chrono::milliseconds kIncompleteDelay(100);
constexpr std::chrono::seconds kOtherLineStands(1);
constexpr std::size_t kMaxIncompleteBytes = 64 * 1024;

}  // namespace

TeedLines::TeedLines(LinePrefix prefix, Terminal& terminal)
    : prefix_(std::move(prefix)), terminal_(&terminal), writer_(terminal.add_writer()) {}

void TeedLines::take(std::string_view text) {
  incomplete_ += text;
  if (const auto end = incomplete_.rfind('\n'); end != std::string::npos) {
    write(std::string_view(incomplete_).substr(0, end + 1));
    incomplete_.erase(0, end + 1);
    due_.reset();
  }
  if (incomplete_.size() >= kMaxIncompleteBytes) write(std::exchange(incomplete_, {}));
  if (incomplete_.empty())
    due_.reset();
  else if (!due_)
    due_ = Deadline::after(kIncompleteDelay);
}

std::optional<Deadline> TeedLines::due() const {
  if (!due_ || terminal_->is_behind()) return std::nullopt;
  std::chrono::nanoseconds wait = due_->remaining();
  if (const auto age = terminal_->age_of_other_line(writer_))
    wait = std::max<std::chrono::nanoseconds>(wait, kOtherLineStands - *age);
  return Deadline::after(wait);
}

void TeedLines::show() {
  const auto time = due();
  if (!time || !time->passed()) return;
  write(std::exchange(incomplete_, {}));
  due_.reset();
}

void TeedLines::finish() {
  if (!incomplete_.empty()) write(std::exchange(incomplete_, {}));
  due_.reset();
  if (terminal_->has_line_of(writer_)) write("\n");
}

void TeedLines::write(std::string_view text) {
  if (!terminal_->has_line_of(writer_) && at_ != At::line_start) {  // another has ended the line
    at_ = At::line_start;
    if (text.starts_with('\n')) text.remove_prefix(1);
  }
  std::string shown;
  for (const char c : text) {
    const bool ends_with_return = at_ == At::return_ && c == '\n';
    if (c == '\r' && at_ != At::inside) continue;  // the cursor is there already
    if (at_ != At::inside && !ends_with_return) shown += prefix_.now();
    shown += c;
    at_ = c == '\n' ? At::line_start : c == '\r' ? At::return_ : At::inside;
  }
  terminal_->write(shown, writer_);
}

}  // namespace gradring::train
