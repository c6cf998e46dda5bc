// SPDX-License-Identifier: Apache-2.0
#include "train/view/tensorboard/tensorboard_sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "kernels/base/host_name.h"
#include "train/options/file_advice.h"
#include "train/records/metrics/environment_error.h"
#include "train/view/page/markdown.h"
#include "train/view/page/picture.h"

namespace gradring::train::tensorboard {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table() {
  constexpr std::uint32_t kReflectedPolynomial = 0x82F63B78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReflectedPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kTable = crc_table();

template <class Integer>
std::string little_endian(Integer value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

std::string masked_crc(std::string_view bytes) {
  constexpr std::uint32_t kMaskDelta = 0xA282EAD8;
  const std::uint32_t crc = crc32c(bytes);
  return little_endian(((crc >> 15) | (crc << 17)) + kMaskDelta);
}

constexpr std::uint8_t kMidGrey = 128;
constexpr std::size_t kGap = 2;  // pixels

constexpr std::string_view kPrefix = "events.out.tfevents.";
constexpr int kSampleZoom = 2;
constexpr int kFilterZoom = 12;

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

/// The seconds in the name of an event file; 0 for another file.
long long seconds_in(const std::string& name) {
  return name.starts_with(kPrefix) ? std::atoll(name.c_str() + kPrefix.size()) : 0;
}

/// Its run directory exists.
const FileAt& created(const FileAt& folder) {
  const int error = make_folder(folder);
  if (error != 0 && error != EEXIST)
    throw EnvironmentError(fmt::format("cannot create {}: {}; {}, or leave out --log tensorboard",
                                       folder.path().string(), std::generic_category().message(error),
                                       advice_on(error, "--run-dir")));
  return folder;
}

std::string first_record() { return record_of(file_version_event(now())); }

/// TensorBoard shows Markdown.
std::string table_of(const std::vector<std::pair<std::string, std::string>>& options) {
  std::vector<std::vector<std::string>> rows = {{"option", "value"}};
  for (const auto& [name, value] : options) rows.push_back({name, markdown::code(value)});
  return markdown::table(rows);
}

}  // namespace

FileAt new_event_file(const FileAt& folder) {
  long long seconds = static_cast<long long>(now());
  int ignored = 0;  // opening the file reports the error
  for (const std::string& name : names_in(folder, ignored)) seconds = std::max(seconds, seconds_in(name) + 1);
  std::string host = host_name();
  std::ranges::replace(host, '/', '_');
  return folder / fmt::format("{}{:010}.{}", kPrefix, seconds, host);
}

TensorBoardSink::TensorBoardSink(const FileAt& folder, Tiles samples)
    : samples_(std::move(samples)), file_(new_event_file(created(folder)), [folder](LineFile::State, const auto&) {
        return Renewal{.file = new_event_file(created(folder)), .head = first_record()};
      }) {
  file_.append(first_record());
}

void TensorBoardSink::append(std::int64_t step, const Summary& summary) {
  if (!summary.empty()) file_.append(record_of(summary_event(now(), step, summary)));
}

void TensorBoardSink::append_text(std::int64_t step, const std::string& text) {
  Summary summary;
  summary.add_text("run/events", text);
  append(step, summary);
}

void TensorBoardSink::start_after(std::int64_t completed) {
  file_.append(record_of(session_start_event(now(), completed > 0 ? completed + 1 : 0)));
}

void TensorBoardSink::rolled_back(std::int64_t steps, std::int64_t /*epochs*/) { start_after(steps); }

void TensorBoardSink::event(const RunEvent& event) {
  std::visit([this](const auto& record) { write(record); }, event);
}

void TensorBoardSink::write(const RunHeader& header) {
  start_after(header.resumed_from);
  Summary summary;
  summary.add_text("run/command", markdown::code(start_command(header)));
  summary.add_text("run/options", table_of(header.config));
  if (header.resumed_from == 0 && !samples_.images.empty())
    summary.add("images/test_samples", grid_of(samples_, kSampleZoom));
  append(header.resumed_from, summary);
}

void TensorBoardSink::write(const StepRecord& record) {
  Summary summary;
  summary.add("train/loss", record.loss);
  summary.add("train/learning_rate", record.learning_rate);
  summary.add("train/gradient_norm", record.gradient_norm);
  summary.add("train/loss_scale", record.loss_scale);
  if (record.underflow) summary.add("train/underflow", *record.underflow);
  summary.add("train/epoch", static_cast<double>(record.epoch));
  summary.add("speed/samples_per_second", record.samples_per_second());
  summary.add("speed/seconds", record.duration.count());
  summary.add("speed/data_wait", record.data_wait.count());
  summary.add("speed/exposed_communication", record.exposed_communication.count());
  if (record.forward) summary.add("speed/forward", *record.forward);
  if (record.backward) summary.add("speed/backward", *record.backward);
  if (record.optimizer) summary.add("speed/optimizer", *record.optimizer);
  append(record.step, summary);
}

void TensorBoardSink::write(const RanksRecord& record) {
  Summary summary;
  for (std::size_t rank = 0; rank < record.seconds.size(); ++rank) {
    summary.add(fmt::format("ranks/seconds/{}", rank), record.seconds[rank]);
    summary.add(fmt::format("ranks/data_wait/{}", rank), record.data_wait[rank]);
    summary.add(fmt::format("ranks/exposed_communication/{}", rank), record.exposed_communication[rank]);
    summary.add(fmt::format("ranks/memory/{}", rank), record.memory[rank]);
  }
  append(record.step, summary);
}

void TensorBoardSink::write(const EvalRecord& record) {
  Summary summary;
  summary.add(record.split + "/accuracy", record.accuracy);
  summary.add(record.split + "/loss", record.loss);
  if (record.top5_accuracy) summary.add(record.split + "/top5_accuracy", *record.top5_accuracy);
  if (record.ema_accuracy) summary.add(record.split + "/ema_accuracy", *record.ema_accuracy);
  if (record.ema_loss) summary.add(record.split + "/ema_loss", *record.ema_loss);
  append(record.step, summary);
}

void TensorBoardSink::write(const RestartRecord& record) {
  append_text(record.step, fmt::format("restart {} of the ranks, after step {}", record.attempt, record.step));
}

void TensorBoardSink::write(const FaultRecord& record) {
  append_text(record.step,
              fmt::format("injected fault: {} on rank {}, step {}", record.kind, record.rank, record.step));
}

void TensorBoardSink::write(const EndRecord& record) {
  append_text(record.steps,
              fmt::format("{}{}{}", name_of(record.outcome), record.reason.empty() ? "" : ": ", record.reason));
}

void TensorBoardSink::parameters(const ParameterSnapshot& snapshot) {
  Summary summary;
  const auto add_all = [&summary](std::string_view group, const std::vector<ParameterValues>& all) {
    for (const ParameterValues& each : all)
      if (const Histogram histogram = histogram_of(each.values); histogram.count > 0)
        summary.add(fmt::format("{}/{}", group, each.name), histogram);
  };
  add_all("weights", snapshot.weights);
  add_all("gradients", snapshot.gradients);
  const auto first = std::ranges::find_if(snapshot.weights, has_visible_filters);
  if (first != snapshot.weights.end())
    summary.add(fmt::format("images/{}", first->name), grid_of(filters_of(*first), kFilterZoom));
  append(snapshot.step, summary);
}

EncodedImage grid_of(const Tiles& tiles, int zoom) {
  const auto enlarged = [zoom](std::int64_t extent) { return static_cast<std::size_t>(extent * zoom); };
  const auto channels = static_cast<std::size_t>(tiles.channels), tile_width = static_cast<std::size_t>(tiles.width);
  const std::size_t height = enlarged(tiles.height), width = enlarged(tiles.width), count = tiles.images.size();
  const auto cols = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  const std::size_t rows = (count + cols - 1) / cols;
  const std::size_t grid_height = rows * (height + kGap) - kGap, grid_width = cols * (width + kGap) - kGap;
  std::vector<std::uint8_t> pixels(grid_height * grid_width * channels, kMidGrey);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t top = i / cols * (height + kGap), left = i % cols * (width + kGap);
    for (std::size_t row = 0; row < height; ++row)
      for (std::size_t col = 0; col < width; ++col) {
        const auto step = static_cast<std::size_t>(zoom);
        const auto from = static_cast<std::ptrdiff_t>((row / step * tile_width + col / step) * channels);
        const auto to = static_cast<std::ptrdiff_t>(((top + row) * grid_width + left + col) * channels);
        std::copy_n(tiles.images[i].begin() + from, channels, pixels.begin() + to);
      }
  }
  return {.height = static_cast<std::int64_t>(grid_height),
          .width = static_cast<std::int64_t>(grid_width),
          .channels = tiles.channels,
          .png = page::png_of({.width = static_cast<std::uint32_t>(grid_width),
                               .height = static_cast<std::uint32_t>(grid_height),
                               .channels = static_cast<std::uint32_t>(channels),
                               .pixels = pixels})};
}

bool has_visible_filters(const ParameterValues& parameter) {
  return parameter.shape.size() == 4 && (parameter.shape[1] == 1 || parameter.shape[1] == 3);
}

Tiles filters_of(const ParameterValues& parameter) {
  const std::int64_t channels = parameter.shape[1], height = parameter.shape[2], width = parameter.shape[3];
  const std::vector<double> weights(parameter.values.begin(), parameter.values.end());
  auto filters =
      page::shaded_filters(weights, static_cast<std::size_t>(channels), static_cast<std::size_t>(height * width));
  return {.height = height, .width = width, .channels = channels, .images = std::move(filters.images)};
}

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char each : bytes) crc = kTable[(crc ^ static_cast<unsigned char>(each)) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

std::string record_of(std::string_view data) {
  const std::string length = little_endian(std::uint64_t{data.size()});
  std::string record = length + masked_crc(length);
  record += data;
  return record + masked_crc(data);
}

}  // namespace gradring::train::tensorboard
