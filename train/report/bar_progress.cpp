// SPDX-License-Identifier: Apache-2.0
#include "train/report/bar_progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace gradring::train {
namespace {

constexpr std::chrono::milliseconds kRedraw{80};
constexpr std::size_t kWidestBar = 40;
constexpr const char* kClearLine = "\r\033[K";

std::string clock_text(EpochSoFar::Seconds time) {
  const auto seconds = std::llround(time.count());
  return fmt::format("{:02}:{:02}", seconds / 60, seconds % 60);
}

}  // namespace

BarProgress::~BarProgress() {
  if (line_open_) out_.write("\n");
}

void BarProgress::step(const StepRecord& record) {
  epoch_.add(record);
  if (record.skipped && !record.ends_run) write_line(skip_text(record));
  const bool last = record.step_of_epoch + 1 == record.steps_in_epoch;
  const auto now = std::chrono::steady_clock::now();
  if (!last && now - drawn_at_ < kRedraw) return;
  drawn_at_ = now;
  draw(record);
}

void BarProgress::eval(const EvalRecord& record) { write_line(eval_text(record)); }

/// In the place of the bar.
void BarProgress::write_line(std::string_view text) {
  out_.write(fmt::format("{}{}\n", kClearLine, text));
  line_open_ = false;
}

void BarProgress::draw(const StepRecord& record) {
  const std::int64_t done = record.step_of_epoch + 1;
  const double share = static_cast<double>(done) / static_cast<double>(record.steps_in_epoch);
  const double rate = epoch_.steps_per_second();
  const EpochSoFar::Seconds left(rate > 0 ? static_cast<double>(record.steps_in_epoch - done) / rate : 0);
  const std::string head = fmt::format("Epoch {}: {:3.0f}%|", record.epoch + 1, 100 * share);
  const std::string tail = fmt::format("| {}/{} [{}<{}, {:.1f}it/s, loss={:.4f}]", done, record.steps_in_epoch,
                                       clock_text(epoch_.time()), clock_text(left), rate, epoch_.mean_loss());
  const std::size_t text = head.size() + tail.size() + 1;  // a full line would wrap
  const std::size_t width = std::min(columns() > text ? columns() - text : 0, kWidestBar);
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(width));
  out_.write(
      fmt::format("{}{}{}{}{}", kClearLine, head, std::string(filled, '#'), std::string(width - filled, ' '), tail));
  line_open_ = true;
}

std::size_t BarProgress::columns() const {
  winsize size{};
  return ::ioctl(out_.fd(), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace gradring::train
