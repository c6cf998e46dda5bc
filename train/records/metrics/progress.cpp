// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/progress.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <vector>

#include "kernels/base/file.h"
#include "kernels/base/printable.h"
#include "train/records/metrics/loss_text.h"
#include "train/records/metrics/terminal_look.h"

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
  /// "0.1234", over the steps with a finite loss; "-" if there are none.
  std::string mean_loss() const { return finite_losses_ > 0 ? loss_text(mean_loss_) : "-"; }
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
  return fmt::format("{}: {} accuracy {:.2f} % ({} of {}), loss {}{}", where, record.split, 100 * record.accuracy,
                     correct, record.samples, loss_text(record.loss), averaged);
}

/// Shows steps and evaluations; skipped steps and evaluations as remarks.
class Progress : public MetricsSink {
 public:
  void event(const RunEvent& event) final {
    if (const auto* step = std::get_if<StepRecord>(&event)) {
      epoch_.add(*step);
      if (step->skipped && !step->ends_run) remark(skip_text(*step));
      show(*step, epoch_);
    }
    if (const auto* eval = std::get_if<EvalRecord>(&event)) remark(eval_text(*eval));
  }
  void rolled_back(std::int64_t, std::int64_t) final { epoch_ = {}; }

 private:
  virtual void show(const StepRecord& record, const EpochStatistics& epoch) = 0;

  EpochStatistics epoch_;
};

class BarProgress final : public Progress {
 public:
  explicit BarProgress(Console& out) : out_(out) {}

  /// Ends the line of an incomplete bar.
  ~BarProgress() override {
    if (shown_ > 0) out_.write("\n");
  }

  /// Replaces the bar.
  void remark(const std::string& text) override {
    out_.write(fmt::format("{}{}\n", clear_bar(columns_now()), printable(text, "\n\t")));
    shown_ = 0;
  }

 private:
  static constexpr const char* kClearLine = "\r\033[K";

  void show(const StepRecord& record, const EpochStatistics& epoch) override {
    constexpr std::chrono::milliseconds kRedraw{80};
    const bool last = record.step_of_epoch + 1 == record.steps_in_epoch;
    const auto now = std::chrono::steady_clock::now();
    if (!last && now - drawn_at_ < kRedraw) return;
    drawn_at_ = now;
    draw(record, epoch);
  }

  /// A terminal that became narrower has wrapped the bar: then it is cleared from its first row on.
  std::string clear_bar(std::size_t columns) const {
    const std::size_t rows = shown_ > columns ? (shown_ + columns - 1) / columns : 1;
    return rows > 1 ? fmt::format("\r\033[{}A\033[J", rows - 1) : kClearLine;
  }

  std::size_t columns_now() const { return terminal_size(out_.fd()).value_or(TerminalSize()).columns; }

  void draw(const StepRecord& record, const EpochStatistics& epoch) {
    const std::int64_t done = record.step_of_epoch + 1;
    const double fraction = static_cast<double>(done) / static_cast<double>(record.steps_in_epoch);
    const double rate = epoch.steps_per_second();
    const Seconds left(rate > 0 ? static_cast<double>(record.steps_in_epoch - done) / rate : 0);
    const std::string count = fmt::format("{}/{}", done, record.steps_in_epoch);
    const std::string loss = "loss=" + epoch.mean_loss();
    const std::size_t columns = columns_now();
    const std::string line = fit(
        {.head = fmt::format("Epoch {}: {:3.0f}%", record.epoch, 100 * fraction),
         .tails = {fmt::format("{} [{}<{}, {:.1f}it/s, {}]", count, clock_text(epoch.time()), clock_text(left), rate,
                               loss),
                   fmt::format("{} [{}, {}]", count, clock_text(left), loss), fmt::format("{} {}", count, loss), count},
         .fraction = fraction},
        columns - 1);  // a full line would wrap
    out_.write(clear_bar(columns) + line);
    shown_ = line.size();
  }

  /// The parts of a bar; of the tails, from the longest to the shortest, one is shown.
  struct Parts {
    std::string head;
    std::vector<std::string> tails;
    double fraction = 0;
  };

  /// At most `width` columns: with the longest tail that leaves room for a short bar, or else without a bar.
  static std::string fit(const Parts& parts, std::size_t width) {
    constexpr std::size_t kWidestBar = 40, kNarrowestBar = 5;
    for (const std::string& tail : parts.tails) {
      const std::size_t text = parts.head.size() + tail.size() + 3;  // two edges, a blank
      if (text + kNarrowestBar > width) continue;
      const std::size_t bar = std::min(width - text, kWidestBar);
      const auto filled = static_cast<std::size_t>(parts.fraction * static_cast<double>(bar));
      return fmt::format("{}|{}{}| {}", parts.head, std::string(filled, '#'), std::string(bar - filled, ' '), tail);
    }
    return fmt::format("{} {}", parts.head, parts.tails.back()).substr(0, width);
  }

  static std::string clock_text(Seconds time) {
    const auto seconds = std::llround(time.count());
    return fmt::format("{:02}:{:02}", seconds / 60, seconds % 60);
  }

  Console& out_;
  std::chrono::steady_clock::time_point drawn_at_{};
  std::size_t shown_ = 0;  // columns of the bar on the last line; 0: there is none
};

class PlainProgress final : public Progress {
 public:
  explicit PlainProgress(std::function<void(std::string_view line)> write) : write_(std::move(write)) {}

  void remark(const std::string& text) override { write_(text); }

 private:
  void show(const StepRecord& record, const EpochStatistics& epoch) override {
    constexpr std::int64_t kLines = 5;  // an epoch, after that of its first step
    const std::int64_t done = record.step_of_epoch + 1;
    const std::int64_t steps = record.steps_in_epoch;
    if (done != 1 && done * kLines / steps == (done - 1) * kLines / steps) return;
    write_(fmt::format("Train: {} [{:4}/{} ({:3}%)]  Loss: {} ({})  {:.1f}it/s, {:.0f}/s  LR: {:.1e}  Data: {:.4f}",
                       record.epoch, done, steps, 100 * done / steps, loss_text(record.loss), epoch.mean_loss(),
                       epoch.steps_per_second(), epoch.samples_per_second(), record.learning_rate,
                       record.data_wait.count()));
  }

  std::function<void(std::string_view line)> write_;
};

class NoProgress final : public MetricsSink {
 public:
  void event(const RunEvent&) override {}
  void remark(const std::string& text) override { print_to_stderr(fmt::format("gradring train: {}\n", text)); }
};

const FileAt& with_folder(const FileAt& file) {
  make_folder(file.parent());  // LineFile reports an error
  return file;
}

}  // namespace

std::unique_ptr<MetricsSink> make_progress(ProgressStyle style, Console& out) {
  if (style == ProgressStyle::none) return std::make_unique<NoProgress>();
  if (style == ProgressStyle::bar || (style == ProgressStyle::automatic && is_terminal(out.fd())))
    return std::make_unique<BarProgress>(out);
  return std::make_unique<PlainProgress>([&out](std::string_view line) { out.write(printable(line, "\n\t") + "\n"); });
}

RankLog::RankLog(const FileAt& file)
    : file_(with_folder(file)),
      progress_(std::make_unique<PlainProgress>([this](std::string_view line) { say(line); })) {}

void RankLog::say(std::string_view line) {
  file_.append(fmt::format("{:%Y-%m-%d %H:%M:%S}  {}", fmt::localtime(std::time(nullptr)), printable(line, "\n\t")));
}

}  // namespace gradring::train
