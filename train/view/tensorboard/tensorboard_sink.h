// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "kernels/base/directory.h"
#include "train/records/metrics/line_file.h"
#include "train/records/metrics/metrics.h"
#include "train/view/tensorboard/event_message.h"
#include "train/view/tensorboard/pictures.h"

namespace gradring::train::tensorboard {

/// The path of a new event file, events.out.tfevents.<time>.<host>, in `folder`, with a time after those of all files
/// there: TensorBoard reads them in the order of their names.
FileAt new_event_file(const FileAt& folder);

/// Writes an event file of TensorBoard, as docs/tensorboard.md describes it. Each event is written at once.
///
/// Errors    EnvironmentError if folder or file cannot be created; in finish(), if events could not be written.
/// Cost      a step: one write of less than 1 KB.
class TensorBoardSink final : public MetricsSink {
 public:
  /// Creates the folder and a new file in it; another one if the file is removed or cut (PatientFile). `samples` are
  /// some test images, shown at the start of a new run.
  TensorBoardSink(const FileAt& folder, Tiles samples);

  void event(const RunEvent& event) override;
  void remark(const std::string&) override {}
  void parameters(const ParameterSnapshot& snapshot) override;
  void rolled_back(std::int64_t steps, std::int64_t epochs) override;
  void finish() override { file_.finish(); }

 private:
  void write(const RunHeader& header);
  void write(const StepRecord& record);
  void write(const RanksRecord& record);
  void write(const EvalRecord& record);
  void write(const RestartRecord& record);
  void write(const CheckpointRecord&) {}
  void write(const FaultRecord& record);
  void write(const EndRecord& record);
  void append(std::int64_t step, const Summary& summary);
  void append_text(std::int64_t step, const std::string& text);
  /// After this, readers know only steps up to `completed`.
  void start_after(std::int64_t completed);

  Tiles samples_;
  PatientFile file_;
};

}  // namespace gradring::train::tensorboard
