// SPDX-License-Identifier: Apache-2.0
#include "train/report/progress.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>

#include "kernels/runtime/file.h"

namespace gradring::train {
namespace {

using Seconds = std::chrono::duration<double>;

/// Mean loss and speed of the running epoch, over its steps since it began, was resumed or rolled back.
class EpochStatistics {
 public:
  void add(const StepRecord& record) {
    if (record.step_of_epoch == 0) *this = {};
    time_ += record.duration;
    samples_ += record.samples;
    ++steps_;
    if (std::isfinite(record.loss)) mean_loss_ += (record.loss - mean_loss_) / static_cast<double>(++finite_losses_);
  }

  Seconds time() const { return time_; }
  double mean_loss() const { return mean_loss_; }
  double steps_per_second() const { return per_second(steps_); }
  double samples_per_second() const { return per_second(samples_); }

 private:
  double per_second(std::int64_t count) const {
    return time_.count() > 0 ? static_cast<double>(count) / time_.count() : 0;
  }

  Seconds time_{0};
  double mean_loss_ = 0;
  std::int64_t finite_losses_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t samples_ = 0;
};

/// "Step 12 is skipped: the gradient of fc_layers.0.weight is not finite (loss scale 65536)"
std::string skip_text(const StepRecord& record) {
  const std::string gradient = record.non_finite.empty() ? "a gradient" : "the gradient of " + record.non_finite;
  const std::string scale = record.loss_scale == 1 ? "" : fmt::format(" (loss scale {})", record.loss_scale);
  return fmt::format("Step {} is skipped: {} is not finite{}", record.step, gradient, scale);
}

/// "Epoch 1: test accuracy 97.12 % (9712 of 10000), loss 0.0912"
std::string eval_text(const EvalRecord& record) {
  const std::int64_t correct = std::llround(record.accuracy * static_cast<double>(record.samples));
  const std::string averaged =
      record.ema_accuracy ? fmt::format("; averaged weights {:.2f} %", 100 * *record.ema_accuracy) : "";
  const std::string where =
      record.ends_epoch ? fmt::format("Epoch {}", record.epoch) : fmt::format("Step {}", record.step);
  return fmt::format("{}: test accuracy {:.2f} % ({} of {}), loss {:.4f}{}", where, 100 * record.accuracy, correct,
                     record.samples, record.loss, averaged);
}

/// Shows steps and evaluations.
class Progress : public MetricsSink {
 public:
  void event(const RunEvent& event) final {
    if (const auto* step_record = std::get_if<StepRecord>(&event)) step(*step_record);
    if (const auto* eval = std::get_if<EvalRecord>(&event)) remark(eval_text(*eval));
  }

 private:
  virtual void step(const StepRecord& record) = 0;
};

class BarProgress final : public Progress {
 public:
  explicit BarProgress(Console& out) : out_(out) {}

  /// Ends the line of an incomplete bar.
  ~BarProgress() override {
    if (line_open_) out_.write("\n");
  }

  void remark(const std::string& text) override { write_line(text); }
  void rolled_back(std::int64_t, std::int64_t) override { epoch_ = {}; }

 private:
  static constexpr const char* kClearLine = "\r\033[K";

  void step(const StepRecord& record) override {
    constexpr std::chrono::milliseconds kRedraw{80};
    epoch_.add(record);
    if (record.skipped && !record.ends_run) write_line(skip_text(record));
    const bool last = record.step_of_epoch + 1 == record.steps_in_epoch;
    const auto now = std::chrono::steady_clock::now();
    if (!last && now - drawn_at_ < kRedraw) return;
    drawn_at_ = now;
    draw(record);
  }

  /// Replaces the bar.
  void write_line(std::string_view text) {
    out_.write(fmt::format("{}{}\n", kClearLine, text));
    line_open_ = false;
  }

  void draw(const StepRecord& record) {
    constexpr std::size_t kWidestBar = 40;
    const std::int64_t done = record.step_of_epoch + 1;
    const double fraction = static_cast<double>(done) / static_cast<double>(record.steps_in_epoch);
    const double rate = epoch_.steps_per_second();
    const Seconds left(rate > 0 ? static_cast<double>(record.steps_in_epoch - done) / rate : 0);
    const std::string head = fmt::format("Epoch {}: {:3.0f}%|", record.epoch, 100 * fraction);
    const std::string tail = fmt::format("| {}/{} [{}<{}, {:.1f}it/s, loss={:.4f}]", done, record.steps_in_epoch,
                                         clock_text(epoch_.time()), clock_text(left), rate, epoch_.mean_loss());
    const std::size_t text = head.size() + tail.size() + 1;  // a full line would wrap
    const std::size_t width = std::min(columns() > text ? columns() - text : 0, kWidestBar);
    const auto filled = static_cast<std::size_t>(fraction * static_cast<double>(width));
    out_.write(
        fmt::format("{}{}{}{}{}", kClearLine, head, std::string(filled, '#'), std::string(width - filled, ' '), tail));
    line_open_ = true;
  }

  static std::string clock_text(Seconds time) {
    const auto seconds = std::llround(time.count());
    return fmt::format("{:02}:{:02}", seconds / 60, seconds % 60);
  }

  std::size_t columns() const {
    winsize size{};
    return ::ioctl(out_.fd(), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  }

  Console& out_;
  EpochStatistics epoch_;
  std::chrono::steady_clock::time_point drawn_at_{};
  bool line_open_ = false;
};

class PlainProgress final : public Progress {
 public:
  explicit PlainProgress(std::function<void(std::string_view line)> write) : write_(std::move(write)) {}

  void remark(const std::string& text) override { write_(text); }
  void rolled_back(std::int64_t, std::int64_t) override { epoch_ = {}; }

 private:
  void step(const StepRecord& record) override {
    constexpr std::int64_t kLines = 5;  // an epoch, after that of its first step
    epoch_.add(record);
    if (record.skipped && !record.ends_run) write_(skip_text(record));
    const std::int64_t done = record.step_of_epoch + 1;
    const std::int64_t steps = record.steps_in_epoch;
    if (done != 1 && done * kLines / steps == (done - 1) * kLines / steps) return;
    write_(fmt::format(
        "Train: {} [{:4}/{} ({:3}%)]  Loss: {:.4f} ({:.4f})  {:.1f}it/s, {:.0f}/s  LR: {:.1e}  Data: {:.4f}",
        record.epoch, done, steps, 100 * done / steps, record.loss, epoch_.mean_loss(), epoch_.steps_per_second(),
        epoch_.samples_per_second(), record.learning_rate, record.data_wait.count()));
  }

  std::function<void(std::string_view line)> write_;
  EpochStatistics epoch_;
};

class NoProgress final : public MetricsSink {
 public:
  void event(const RunEvent&) override {}
  void remark(const std::string& text) override { print_to_stderr(fmt::format("gradring train: {}\n", text)); }
};

std::filesystem::path with_folder(const std::filesystem::path& path) {
  std::error_code ignored;  // LineFile reports the error
  std::filesystem::create_directories(path.parent_path(), ignored);
  return path;
}

}  // namespace

std::unique_ptr<MetricsSink> make_progress(std::string_view style, Console& out) {
  if (style == "none") return std::make_unique<NoProgress>();
  if (style == "bar" || (style == "auto" && ::isatty(out.fd()))) return std::make_unique<BarProgress>(out);
  return std::make_unique<PlainProgress>([&out](std::string_view line) { out.write(fmt::format("{}\n", line)); });
}

RankLog::RankLog(const std::filesystem::path& path)
    : file_(with_folder(path)),
      progress_(std::make_unique<PlainProgress>([this](std::string_view line) { say(line); })) {}

void RankLog::say(std::string_view line) {
  file_.append(fmt::format("{:%Y-%m-%d %H:%M:%S}  {}", fmt::localtime(std::time(nullptr)), line));
}

}  // namespace gradring::train
