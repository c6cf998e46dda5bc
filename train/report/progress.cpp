// SPDX-License-Identifier: Apache-2.0
#include "train/report/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace gradring::train {
namespace {

using Seconds = std::chrono::duration<double>;

std::string clock_text(Seconds time) {
  const auto seconds = static_cast<long long>(time.count() + 0.5);
  return fmt::format("{:02}:{:02}", seconds / 60, seconds % 60);
}

std::string eval_text(const EvalRecord& record) {
  return fmt::format("Epoch {}: test accuracy {:.2f} % ({} of {}), loss {:.4f}", record.epoch + 1,
                     100 * record.accuracy, static_cast<std::int64_t>(record.accuracy * static_cast<double>(record.samples) + 0.5),
                     record.samples, record.loss);
}

/// What both styles keep of the epoch so far.
struct EpochSoFar {
  Seconds time{0};
  double mean_loss = 0;

  void add(const StepRecord& record) {
    if (record.step_of_epoch == 0) *this = {};
    time += record.duration;
    mean_loss += (record.loss - mean_loss) / static_cast<double>(record.step_of_epoch + 1);
  }
};

/// Epoch 1:  43%|########            | 403/938 [00:12<00:16, 33.1it/s, loss=0.213]
class BarProgress final : public MetricsSink {
 public:
  explicit BarProgress(std::FILE* out) : out_(out) {}

  void step(const StepRecord& record) override {
    epoch_.add(record);
    const bool last = record.step_of_epoch + 1 == record.steps_in_epoch;
    const auto now = std::chrono::steady_clock::now();
    if (!last && now - drawn_ < kRedraw) return;
    drawn_ = now;
    draw(record);
  }

  void eval(const EvalRecord& record) override {
    fmt::print(out_, "\r\033[K{}\n", eval_text(record));
    std::fflush(out_);
  }

 private:
  static constexpr std::chrono::milliseconds kRedraw{80};

  void draw(const StepRecord& record) {
    const auto done = record.step_of_epoch + 1;
    const double share = static_cast<double>(done) / static_cast<double>(record.steps_in_epoch);
    const double rate = epoch_.time.count() > 0 ? static_cast<double>(done) / epoch_.time.count() : 0;
    const Seconds left(rate > 0 ? static_cast<double>(record.steps_in_epoch - done) / rate : 0);
    const std::string head = fmt::format("Epoch {}: {:3.0f}%|", record.epoch + 1, 100 * share);
    const std::string tail = fmt::format("| {}/{} [{}<{}, {:.1f}it/s, loss={:.4f}]", done, record.steps_in_epoch,
                                         clock_text(epoch_.time), clock_text(left), rate, epoch_.mean_loss);
    const std::size_t room = columns() > head.size() + tail.size() ? columns() - head.size() - tail.size() - 1 : 0;
    const std::size_t width = std::min<std::size_t>(room, 40);
    const auto filled = static_cast<std::size_t>(share * static_cast<double>(width));
    fmt::print(out_, "\r\033[K{}{}{}{}", head, std::string(filled, '#'), std::string(width - filled, ' '), tail);
    std::fflush(out_);
  }

  std::size_t columns() const {
    winsize size{};
    return ::ioctl(::fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  }

  std::FILE* out_;
  EpochSoFar epoch_;
  std::chrono::steady_clock::time_point drawn_{};
};

/// Train: 1 [ 400/938 ( 43%)]  Loss: 0.213 (0.231)  33.1it/s, 2118/s  LR: 1.0e-03  Data: 0.0002
class PlainProgress final : public MetricsSink {
 public:
  explicit PlainProgress(std::FILE* out) : out_(out) {}

  void step(const StepRecord& record) override {
    epoch_.add(record);
    const auto done = record.step_of_epoch + 1;
    if (done * kLines / record.steps_in_epoch == (done - 1) * kLines / record.steps_in_epoch) return;
    const double rate = epoch_.time.count() > 0 ? static_cast<double>(done) / epoch_.time.count() : 0;
    fmt::print(out_, "Train: {} [{:4}/{} ({:3}%)]  Loss: {:.4f} ({:.4f})  {:.1f}it/s, {:.0f}/s  LR: {:.1e}  Data: {:.4f}\n",
               record.epoch + 1, done, record.steps_in_epoch, 100 * done / record.steps_in_epoch, record.loss,
               epoch_.mean_loss, rate, rate * static_cast<double>(record.samples), record.learning_rate,
               record.data_wait.count());
    std::fflush(out_);
  }

  void eval(const EvalRecord& record) override {
    fmt::print(out_, "{}\n", eval_text(record));
    std::fflush(out_);
  }

 private:
  static constexpr std::int64_t kLines = 5;  // an epoch

  std::FILE* out_;
  EpochSoFar epoch_;
};

class NoProgress final : public MetricsSink {
 public:
  void step(const StepRecord&) override {}
  void eval(const EvalRecord&) override {}
};

}  // namespace

std::unique_ptr<MetricsSink> make_progress(std::string_view style, std::FILE* out) {
  if (style == "none") return std::make_unique<NoProgress>();
  if (style == "bar" || (style == "auto" && ::isatty(::fileno(out)))) return std::make_unique<BarProgress>(out);
  return std::make_unique<PlainProgress>(out);
}

}  // namespace gradring::train
