// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/directory.h"
#include "train/records/metrics/line_file.h"
#include "train/records/metrics/metrics.h"
#include "train/records/metrics/parameter_snapshot.h"
#include "train/view/tensorboard/event_message.h"

namespace gradring::train::tensorboard {

/// CRC-32C: the polynomial of Castagnoli, reflected.
///
/// Cost      one table look-up a byte.
/// Source    RFC 3720, appendix B.4.
std::uint32_t crc32c(std::string_view bytes);

/// `data` as a record of a TFRecord file:
///
///   u64 length;  u32 masked CRC-32C of the length;  the data;  u32 masked CRC-32C of the data
///
/// All integers are little-endian. A CRC is masked because data that contains its own CRC would be weakly protected.
///
/// Source    tensorflow/core/lib/io/record_writer.h.
std::string record_of(std::string_view data);

/// Images of one size, 8 bits per channel, channels innermost.
struct Tiles {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 1;  ///< 1 or 3
  std::vector<std::vector<std::uint8_t>> images{};
};

/// The images side by side in a nearly square grid, in reading order, each pixel enlarged to `zoom` by `zoom`, with gaps
/// of mid grey. At least one image.
EncodedImage grid_of(const Tiles& tiles, int zoom);

/// Whether a parameter is a convolution of one or three input channels, whose filters can be seen.
bool has_visible_filters(const ParameterValues& parameter);

/// The filters of such a convolution (page::shaded_filters); three input channels are red, green and blue.
Tiles filters_of(const ParameterValues& parameter);

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
