// SPDX-License-Identifier: Apache-2.0
#include "train/cli/fetch_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "train/cli/data_options.h"

namespace gradring::train {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kRedraw{100};
constexpr const char* kClearLine = "\r\033[K";

class FetchProgress final : public data::FetchListener {
 public:
  explicit FetchProgress(Console& out) : out_(out), terminal_(::isatty(out.fd())) {}

  void already_there(std::string_view file) override { say(fmt::format("{} is there already", file)); }

  void asking(std::string_view file, std::string_view url, std::uint64_t begin) override {
    file_ = file;
    begin_ = begin;
    asked_at_ = Clock::now();
    say(fmt::format("{}{}", url, begin > 0 ? " from " + megabytes(begin) + " on" : ""));
  }

  void arrived(std::uint64_t bytes, std::uint64_t of_bytes) override {
    const auto now = Clock::now();
    if (!terminal_ || (now - drawn_at_ < kRedraw && bytes < of_bytes)) return;
    drawn_at_ = now;
    const double seconds = std::chrono::duration<double>(now - asked_at_).count();
    const double rate = seconds > 0 && bytes > begin_ ? static_cast<double>(bytes - begin_) / seconds / 1e6 : 0;
    out_.write(fmt::format("{}{} {:3.0f} % of {}, {:.1f} MB/s", kClearLine, file_,
                           100.0 * static_cast<double>(bytes) / static_cast<double>(of_bytes), megabytes(of_bytes),
                           rate));
    line_open_ = true;
  }

  void failed(std::string_view, std::string_view why) override { say(fmt::format("  failed: {}", why)); }
  void done(std::string_view file) override { say(fmt::format("{} is whole and right", file)); }

 private:
  void say(const std::string& text) {
    out_.write(fmt::format("{}{}\n", line_open_ ? kClearLine : "", text));
    line_open_ = false;
  }

  Console& out_;
  const bool terminal_;
  std::string file_;
  std::uint64_t begin_ = 0;
  Clock::time_point asked_at_;
  Clock::time_point drawn_at_;
  bool line_open_ = false;
};

}  // namespace

std::unique_ptr<data::FetchListener> make_fetch_progress(Console& out) { return std::make_unique<FetchProgress>(out); }

}  // namespace gradring::train
