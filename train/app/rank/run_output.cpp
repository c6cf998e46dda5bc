// SPDX-License-Identifier: Apache-2.0
#include "train/app/rank/run_output.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "kernels/base/directory.h"
#include "train/core/config/option_sources.h"
#include "train/core/config/options.h"
#include "train/core/config/resolve.h"
#include "train/core/setup/run_directory.h"
#include "train/core/setup/run_settings.h"
#include "train/launch/workers/run_folder.h"
#include "train/options/file_advice.h"
#include "train/records/checkpoint/error.h"
#include "train/records/metrics/environment_error.h"
#include "train/records/metrics/line_file.h"
#include "train/records/metrics/metrics.h"
#include "train/records/metrics/progress.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// The folder of a launcher that may restart the ranks, after a failure or when a node joins or leaves.
fs::path launch_folder_of(const WorkerEnvironment& environment) {
  const bool restarts = environment.max_restarts > 0 || !environment.node_address.empty();
  return restarts && !environment.store_path.empty() ? fs::path(environment.store_path).parent_path() : fs::path();
}

/// Empty if it cannot be read, or is larger than any that gradring writes.
std::optional<std::string> text_of(FileSystem& files, const fs::path& path) try {
  constexpr std::uint64_t kMostBytes = 1 << 20;
  const auto file = files.open(path);
  if (file->size() > kMostBytes) return std::nullopt;
  return read_text(*file, path, 0, file->size());
} catch (const Error&) {
  return std::nullopt;
}

fs::path shown(const fs::path& path) {
  std::error_code ignored;
  const fs::path relative = path.lexically_proximate(fs::current_path(ignored));
  return relative.empty() || *relative.begin() == ".." ? path : relative;
}

/// Equal in processes for which a path names the same file: those of one mount namespace of one running kernel. Empty
/// if it is not known.
std::string view_of_files() try {
  constexpr std::size_t kMostBytes = 256;
  return read_small_file("/proc/sys/kernel/random/boot_id", kMostBytes) +
         fs::read_symlink("/proc/self/ns/mnt").string();
} catch (const std::exception&) {
  return {};
}

std::pair<std::uint64_t, std::uint64_t> numbers_of(const Directory& directory) {
  struct stat facts {};
  ::fstat(directory.fd().get(), &facts);
  return {facts.st_dev, facts.st_ino};
}

/// The bytes of a path as numbers, since a path need not be UTF-8 as JSON's strings are.
Json bytes_of(const fs::path& path) { return std::vector<std::uint8_t>(path.native().begin(), path.native().end()); }

fs::path path_of(const Json& bytes) {
  const auto values = bytes.get<std::vector<std::uint8_t>>();
  return std::string(values.begin(), values.end());
}

}  // namespace

std::string identity_of(const Directory& run_dir) {
  const fs::path now = run_dir.current_path();
  return Json{{"path", bytes_of(now.empty() ? run_dir.path() : now)},
              {"view", view_of_files()},
              {"numbers", numbers_of(run_dir)}}
      .dump();
}

Directory open_identified(const std::string& identity) {
  const Json rank_0 = Json::parse(identity);
  const fs::path path = path_of(rank_0.at("path"));
  const auto view = rank_0.at("view").get<std::string>();
  const bool is_shared = !view.empty() && view == view_of_files();
  std::error_code error;
  if (!is_shared) fs::create_directories(path, error);
  Directory directory(path);
  if (const int reason = errno; !directory)
    throw EnvironmentError("cannot open the run directory " + path.string() + ": " +
                           std::generic_category().message(reason) + "; " + advice_on(reason, "--run-dir"));
  if (is_shared && rank_0.at("numbers") != Json(numbers_of(directory)))
    throw EnvironmentError("the run directory " + path.string() +
                           " is not the one that rank 0 has locked: it was moved or removed while the run started; "
                           "start it again");
  return directory;
}

bool names_identified(const fs::path& path, const std::string& identity) {
  const Json known = Json::parse(identity, nullptr, false);
  if (!known.is_object() || known.value("view", "") != view_of_files()) return true;
  const Directory directory(path);
  return directory && known.value("numbers", Json()) == Json(numbers_of(directory));
}

RunOutput::RunOutput(const TrainConfig& config, const WorkerEnvironment& environment)
    : config_(config),
      leads_(environment.rank == 0),
      launch_folder_(launch_folder_of(environment)),
      restarted_(environment.restart_count > 0) {
  if (const auto named = named_run_dir(config.run_dir)) path_ = last_path_ = fs::absolute(*named);
}

/// Ranks that are started again must not resume what is at the path now, or begin anew there.
void RunOutput::check_restarted() {
  if (!restarted_ || launch_folder_.empty() || path_.empty()) return;
  const auto identity = text_of(files_, RunFolder::run_directory_file(launch_folder_));
  if (identity && !names_identified(path_, *identity))
    throw EnvironmentError(
        fmt::format("--run-dir {} is not the directory in which this run has begun: that one was "
                    "moved or removed; resume it where it is",
                    path_.string()));
}

Start RunOutput::find_start() {
  if (!leads_) return {};
  check_restarted();
  const auto named = path_.empty() ? std::nullopt : std::optional(path_);
  if (named && config_.resume != "none" && state_of(*named) == RunDirState::run)
    lock_ = RunLock(*named, launch_folder_);
  Start start = train::find_start(config_, named, files_, restarted_);
  if (start.in_place && !lock_) {  // another run created it in the meantime
    lock_ = RunLock(*named, launch_folder_);
    start = train::find_start(config_, named, files_, restarted_);
  }
  in_place_ = start.in_place;
  if (start.resume) {
    resumed_from_ = start.resume->from;
    before_ = saved_settings(start.resume->checkpoint);
  }
  if (const auto config = in_place_ ? text_of(files_, newest_config(files_, path_)) : std::nullopt;
      config && read_known_options(*config))
    before_ = config;
  if (in_place_ && before_) keep_settings(*before_, config_);
  return start;
}

std::optional<Summary> RunOutput::finished_before(const TrainingProgress& progress, bool is_over) {
  if (!in_place_ || !is_over) return std::nullopt;
  auto summary = Summary::from_json(text_of(files_, train::summary_of(path_)).value_or(""));
  if (!summary || summary->steps != progress.steps) return std::nullopt;
  lock_.release();
  return summary;
}

void RunOutput::check_files(comm::ProcessGroup& group) const {
  const std::string identity = group.broadcast_on_host(in_place_ ? identity_of(directory()) : std::string(), 0);
  if (identity.empty()) return;
  const Directory own = leads_ ? Directory() : open_identified(identity);
  const Directory& run_dir = leads_ ? directory() : own;
  const RankLog log(run_dir.at(log_file(run_dir.path(), group.rank())));
  if (leads_) check_metrics(run_dir.at(metrics_of(run_dir.path())));
  group.barrier_on_host();
}

std::vector<std::string> RunOutput::open(const TrainConfig& resolved, const TrainingProgress& progress) {
  if (!leads_) return {};
  std::vector<std::string> remarks;
  if (in_place_ || !resumed_from_.empty())
    remarks = resume(resolved, progress);
  else
    make(resolved);
  if (!launch_folder_.empty())
    write_file_whole(RunFolder::run_directory_file(launch_folder_), identity_of(directory()));
  return remarks;
}

void RunOutput::share(comm::ProcessGroup& group) {
  const std::string identity = group.broadcast_on_host(leads_ ? identity_of(directory()) : std::string(), 0);
  if (!leads_) opened_ = open_identified(identity);
}

void RunOutput::make(const TrainConfig& resolved) {
  const bool generated = path_.empty();
  const std::string name = config_.name.empty() ? config_.dataset + "-" + nn::name_of(model_of(config_)) : config_.name;
  const std::string origin = resumed_from_.empty() ? "" : source_line(resumed_from_);
  LockedRunDir made =
      make_run_dir({.path = generated ? fs::absolute(generated_run_dir(name, std::time(nullptr))) : path_,
                    .generated = generated,
                    .launch_folder = launch_folder_,
                    .config = origin + to_resolved_toml(resolved)});
  path_ = last_path_ = std::move(made.path);
  lock_ = std::move(made.lock);
  if (!resolved.model_text.empty()) write_file_whole(directory().at(model_file(path_)), resolved.model_text);
}

std::vector<std::string> RunOutput::resume(const TrainConfig& resolved, const TrainingProgress& progress) {
  const auto compared = before_ ? changed_options(*before_, config_, resolved) : std::nullopt;
  const auto changes = compared.value_or(std::vector<ChangedOption>());
  const std::string where =
      resumed_from_.empty()
          ? fmt::format("no valid checkpoint in {}: training from step 0", shown(checkpoints_of(path_)).string())
          : fmt::format("resumed from {}: {} step{} done, in epoch {}", shown(resumed_from_).string(), progress.steps,
                        progress.steps == 1 ? "" : "s", progress.epoch + 1);
  std::string options = compared ? "no option changed" : "the options of its run are not known";
  if (!changes.empty()) options = "changed options: " + to_string(changes);
  if (!in_place_) {
    make(resolved);
    return {where + "; " + options};
  }
  if (!changes.empty() || !files_.exists(newest_config(files_, path_))) {  // first, so that a full disk removes nothing
    const std::string head = fmt::format("# Since step {}, {}\n", progress.steps, options);
    options +=
        fmt::format(" ({})", write_next_config(directory(), head + to_resolved_toml(resolved)).filename().string());
  }
  truncate_metrics(directory().at(metrics_of(path_)), progress.steps, progress.epoch);
  const bool own = !resumed_from_.empty() && is_own_checkpoint(path_, resumed_from_);
  std::vector<std::string> remarks = checkpoints().abandon_after(own ? progress.steps : -1);
  remarks.insert(remarks.begin(), where + "; " + options);
  return remarks;
}

CheckpointDirectory RunOutput::checkpoints() {
  return {files_,
          checkpoints_of(path_),
          {.keep_last = static_cast<int>(config_.keep_last), .keep_best = static_cast<int>(config_.keep_best)}};
}

void RunOutput::begin() const {
  if (!leads_) return;
  const FileAt summary = directory().at(train::summary_of(path_));
  ::unlinkat(summary.directory(), summary.name(), 0);  // there may be none
}

std::vector<std::string> RunOutput::check_directory() {
  if (!leads_) return {};
  lock_.check_held();
  const fs::path now = current_path();
  if (now == std::exchange(last_path_, now)) return {};
  return {fmt::format("the run directory {} was moved to {}: the run continues there", shown(path_).string(),
                      shown(now).string())};
}

void RunOutput::finish(const Summary& summary) {
  if (!leads_) return;
  lock_.check_held();
  write_file_whole(directory().at(train::summary_of(path_)), summary.to_json());
  lock_.release();
}

void RunOutput::fail(const UnfinishedRun& run) noexcept try {
  if (!leads_) return;
  lock_.check_held();
  write_file_whole(directory().at(train::summary_of(path_)), run.to_json());
} catch (...) {  // a full disk; the error that ended the run is the one to report
}

fs::path RunOutput::shown_source() const { return resumed_from_.empty() ? fs::path() : shown(resumed_from_); }

fs::path RunOutput::current_path() const {
  const fs::path now = directory() ? directory().current_path() : path_;
  return now.empty() ? path_ : now;
}

fs::path RunOutput::shown_path() const {
  if (const fs::path now = current_path(); now != path_) return shown(now);
  const auto named = named_run_dir(config_.run_dir);
  return named ? *named : shown(path_);
}

}  // namespace gradring::train
