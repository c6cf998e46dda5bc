// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "train/core/setup/run_lock.h"
#include "train/records/checkpoint/file_system.h"

namespace gradring::train {

// A run directory keeps the results of a run: config.resolved.toml, model.toml if the model is a file, metrics.jsonl,
// summary.json, checkpoints/ and logs/rank_<N>.log. It is locked while the run lasts (run_lock.h). Do not confuse it
// with launch/run_folder.h, the temporary folder in which the processes of a launch find each other.

/// The directory of --run-dir, without a trailing slash; empty if the option is.
std::optional<std::filesystem::path> named_run_dir(const std::string& option);

/// Where runs are kept unless --run-dir says otherwise.
inline constexpr const char* kRunsFolder = "runs";

/// The default: runs/<name>-<time>, in local time to the second.
std::filesystem::path generated_run_dir(std::string_view name, std::time_t now);

/// A copy of the file of --model.
inline std::filesystem::path model_file(const std::filesystem::path& run_dir) { return run_dir / "model.toml"; }

enum class RunDirState : std::uint8_t {
  absent,
  vacant,  ///< an empty directory, or one in which make_run_dir was killed
  run,     ///< it holds config.resolved.toml, or a checkpoint
  other,
};

/// Errors    EnvironmentError if it cannot be read.
RunDirState state_of(const std::filesystem::path& path);

/// What somebody may have meant who named `path`, which is no run: ". Did you mean runs/a?", for the end of a message.
/// Of a folder of runs it is the one that was written last, of the name of a run its path in runs/. Empty if no run was
/// found.
std::string did_you_mean_run(const std::filesystem::path& path);

/// Checks that a run may start in `path`: it is absent or vacant. Called before the run waits for other ranks.
///
/// Errors    UsageError.
void check_new_run_dir(const std::filesystem::path& path);

/// Checks that `path` is a run directory, before a run resumes in it.
///
/// Errors    UsageError.
void check_is_run_dir(const std::filesystem::path& path);

struct NewRunDir {
  std::filesystem::path path{};
  bool generated = false;                 ///< appends -2, -3, ... to the name if another run has it
  std::filesystem::path launch_folder{};  ///< as RunLock
  std::string config{};                   ///< the text of config.resolved.toml
};

struct LockedRunDir {
  std::filesystem::path path{};
  RunLock lock{};
};

/// Creates a run directory, or takes a vacant one, locks it, and writes config.resolved.toml and an empty logs/. If
/// several processes create one of the same name at the same time, each gets its own (generated names) or only one
/// succeeds. Leaves nothing but parent directories if it fails.
///
/// Errors    UsageError if another run has the name, or it is not vacant; EnvironmentError if it cannot be created or
///           written.
LockedRunDir make_run_dir(const NewRunDir& spec);

std::filesystem::path checkpoints_of(const std::filesystem::path& run_dir);
std::filesystem::path metrics_of(const std::filesystem::path& run_dir);
/// tensorboard/, of --log tensorboard
std::filesystem::path tensorboard_of(const std::filesystem::path& run_dir);
std::filesystem::path summary_of(const std::filesystem::path& run_dir);
/// logs/rank_<N>.log
std::filesystem::path log_file(const std::filesystem::path& run_dir, int rank);

// The options of a run: config.resolved.toml as it was started, and config.resolved-2.toml, -3, ... for each resume
// that changed some. They are never overwritten, and --config accepts each.

/// config.resolved.toml
std::filesystem::path first_config(const std::filesystem::path& run_dir);

/// Whether `name` is one of these.
bool is_config_name(const std::string& name);

/// The one of the highest number; config.resolved.toml if there is no other.
std::filesystem::path newest_config(FileSystem& files, const std::filesystem::path& run_dir);
std::filesystem::path newest_config(const std::filesystem::path& run_dir);

/// Writes the next one; config.resolved.toml if somebody removed it.
///
/// Returns   its path.
/// Errors    EnvironmentError.
std::filesystem::path write_next_config(const Directory& run_dir, std::string_view text);

}  // namespace gradring::train
