// SPDX-License-Identifier: Apache-2.0
#include "train/report/metrics.h"

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>

#include "train/report/environment_error.h"

namespace gradring::train {

namespace {

using Json = nlohmann::ordered_json;

/// Whether a line was written up to step `steps`, in an epoch before `epoch` if it is an evaluation.
bool is_kept(const std::string& text, std::int64_t steps, std::int64_t epoch) {
  const Json line = Json::parse(text, nullptr, false);
  if (!line.is_object()) return false;
  if (line.value("event", "") == "step") return line.value("step", steps + 1) <= steps;
  return line.value("epoch", epoch) < epoch;
}

[[noreturn]] void throw_unreadable(const std::filesystem::path& path, const std::string& why) {
  throw EnvironmentError("cannot read " + path.string() + ": " + why + "; nothing was removed from it");
}

}  // namespace

void JsonLinesSink::step(const StepRecord& record) {
  const double seconds = record.duration.count();
  Json line{{"event", "step"},
            {"step", record.step},
            {"epoch", record.epoch},
            {"loss", record.loss},
            {"lr", record.learning_rate},
            {"samples", record.samples},
            {"samples_per_second", seconds > 0 ? static_cast<double>(record.samples) / seconds : 0.0},
            {"seconds", seconds},
            {"data_wait", record.data_wait.count()},
            {"exposed_communication", record.exposed_communication.count()},
            {"loss_scale", record.loss_scale},
            {"skipped", record.skipped}};
  if (record.gradient_norm) line["gradient_norm"] = *record.gradient_norm;
  if (record.underflow) line["underflow"] = *record.underflow;
  if (!record.non_finite.empty()) line["non_finite"] = record.non_finite;
  file_.append(line.dump());
}

void JsonLinesSink::eval(const EvalRecord& record) {
  Json line{{"event", "eval"},
            {"epoch", record.epoch},
            {"accuracy", record.accuracy},
            {"loss", record.loss},
            {"samples", record.samples}};
  if (record.ema_accuracy) line["ema_accuracy"] = *record.ema_accuracy;
  if (record.ema_loss) line["ema_loss"] = *record.ema_loss;
  file_.append(line.dump());
}

void JsonLinesSink::rolled_back(std::int64_t steps, std::int64_t epoch) {
  file_.edit([&] { truncate_metrics(path_, steps, epoch); },
             [&](const std::string& line) { return is_kept(line, steps, epoch); });
}

void check_metrics(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) return;
  if (!std::filesystem::is_regular_file(status))
    throw_unreadable(path, error ? error.message() : "it is not a regular file");
  const LineFile opened(path);
}

void truncate_metrics(const std::filesystem::path& path, std::int64_t steps, std::int64_t epoch) {
  check_metrics(path);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return;
  std::ifstream file(path);
  if (!file) throw_unreadable(path, std::generic_category().message(errno));
  std::uintmax_t kept = 0;
  for (std::string line; std::getline(file, line) && !file.eof() && is_kept(line, steps, epoch);)
    kept += line.size() + 1;
  if (file.bad()) throw_unreadable(path, "a read failed");
  std::filesystem::resize_file(path, kept, error);
  if (error) throw EnvironmentError("cannot truncate " + path.string() + ": " + error.message());
}

}  // namespace gradring::train
