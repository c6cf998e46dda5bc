// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "kernels/base/error.h"
#include "train/records/checkpoint/error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kPrefixBytes = 8;

[[noreturn]] void refuse_safetensors(const fs::path& path, const std::string& found) {
  throw CheckpointError(path, "is not a valid safetensors file: " + found, "write it again, or use another");
}

/// Why a name cannot be in a header; empty if it can. Names end up in C strings and on terminals.
std::string_view name_defect(std::string_view name) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::ranges::any_of(name, is_control)) return "has control characters";
  if (name == "__metadata__") return "is reserved";
  return "";
}

/// Receives the JSON of a header value by value, and throws at the first one that is out of place.
class HeaderParser final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderParser(const fs::path& path) : path_(path) {}

  SafetensorsHeader take() { return std::move(header_); }

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("true or false"); }
  bool number_float(double, const std::string& text) override { unexpected("the number " + in_quotes(text)); }
  bool number_integer(std::int64_t value) override { unexpected("the number " + std::to_string(value)); }
  bool binary(nlohmann::json::binary_t&) override { unexpected("binary data"); }

  bool number_unsigned(std::uint64_t value) override {
    if (state_ != State::shape && state_ != State::offsets) unexpected("the number " + std::to_string(value));
    if (value > kLargestInteger) refuse("has a number above 2^48 - 1");
    if (state_ == State::offsets)
      offsets_.push_back(value);
    else
      entry_.shape.push_back(static_cast<std::int64_t>(value));
    if (offsets_.size() > 2) refuse("has more than two data_offsets");
    if (entry_.shape.size() > kMostExtents) refuse("has more than 64 extents");
    return true;
  }

  bool string(std::string& value) override {
    if (state_ == State::metadata) {
      header_.metadata[metadata_key_] = std::move(value);
      return true;
    }
    if (state_ != State::type) unexpected("the text " + in_quotes(value));
    const auto type = find_type(&TensorTypeNames::safetensors, value);
    if (!type) refuse("has the unknown type " + in_quotes(value));
    entry_.type = *type;
    state_ = State::entry;
    return true;
  }

  bool start_object(std::size_t) override {
    switch (state_) {
      case State::start: state_ = State::tensors; return true;
      case State::metadata_start: state_ = State::metadata; return true;
      case State::entry_start: state_ = State::entry; return true;
      default: unexpected("an object");
    }
  }

  bool key(std::string& name) override {
    switch (state_) {
      case State::tensors: begin_entry(name); return true;
      case State::metadata: begin_metadata(name); return true;
      default: begin_field(name); return true;
    }
  }

  bool end_object() override {
    if (state_ == State::entry) finish_entry();
    state_ = state_ == State::tensors ? State::end : State::tensors;
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ != State::shape_start && state_ != State::offsets_start) unexpected("a list");
    state_ = state_ == State::shape_start ? State::shape : State::offsets;
    return true;
  }

  bool end_array() override {
    state_ = State::entry;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    refuse_safetensors(path_, "its header is not valid JSON at byte " + std::to_string(position));
  }

 private:
  enum class State {
    start,
    tensors,
    metadata_start,
    metadata,
    entry_start,
    entry,
    type,
    shape_start,
    shape,
    offsets_start,
    offsets,
    end
  };

  void begin_entry(std::string& name) {
    if (name == "__metadata__") {
      if (std::exchange(saw_metadata_, true)) refuse_safetensors(path_, "its header has the key '__metadata__' twice");
      state_ = State::metadata_start;
      return;
    }
    entry_ = {};
    entry_.name = std::move(name);
    if (const auto defect = name_defect(entry_.name); !defect.empty()) refuse(std::string(defect));
    if (header_.tensors.size() == kMostTensors) refuse_safetensors(path_, "it has more than 65,536 tensors");
    offsets_.clear();
    saw_type_ = saw_shape_ = saw_offsets_ = false;
    state_ = State::entry_start;
  }

  void begin_metadata(std::string& name) {
    if (header_.metadata.contains(name))
      refuse_safetensors(path_, "its header has the key " + in_quotes(name) + " twice in __metadata__");
    if (header_.metadata.size() == kMostMetadata)
      refuse_safetensors(path_, "it has more than 4,096 entries in __metadata__");
    metadata_key_ = std::move(name);
  }

  void begin_field(const std::string& name) {
    const auto once = [&](bool& saw, State state) {
      if (std::exchange(saw, true)) refuse("has the key " + in_quotes(name) + " twice");
      state_ = state;
    };
    if (name == "dtype") return once(saw_type_, State::type);
    if (name == "shape") return once(saw_shape_, State::shape_start);
    if (name == "data_offsets") return once(saw_offsets_, State::offsets_start);
    refuse("has the key " + in_quotes(name) + ", expected only dtype, shape and data_offsets");
  }

  void finish_entry() {
    if (!saw_type_ || !saw_shape_ || offsets_.size() != 2) refuse("lacks dtype, shape or two data_offsets");
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    const auto bytes = byte_size(entry_.type, entry_.shape);
    if (entry_.end < entry_.begin || bytes != entry_.end - entry_.begin)
      refuse("has shape " + shape_text(entry_.shape) + " of " + std::string(names_of(entry_.type).safetensors) +
             ", but bytes " + std::to_string(entry_.begin) + " to " + std::to_string(entry_.end));
    header_.tensors.push_back(std::move(entry_));
  }

  /// Rejects the current entry.
  [[noreturn]] void refuse(const std::string& found) const {
    refuse_safetensors(path_, "tensor " + in_quotes(entry_.name) + " " + found);
  }

  [[noreturn]] void unexpected(const std::string& what) const {
    const std::string found = "has " + what + ", expected " + expected_here();
    if (state_ == State::start || state_ == State::tensors) refuse_safetensors(path_, "its header " + found);
    if (state_ == State::metadata || state_ == State::metadata_start)
      refuse_safetensors(path_, "its __metadata__ " + found);
    refuse(found);
  }

  const char* expected_here() const {
    switch (state_) {
      case State::type: return "the name of a type";
      case State::metadata: return "text";
      case State::shape:
      case State::offsets: return "integers that are not negative";
      case State::shape_start:
      case State::offsets_start: return "a list of integers";
      default: return "an object of named members";
    }
  }

  static constexpr std::size_t kMostTensors = 65'536;
  static constexpr std::size_t kMostMetadata = 4'096;
  static constexpr std::size_t kMostExtents = 64;  // PyTorch's and NumPy's limit
  static constexpr std::uint64_t kLargestInteger = (std::uint64_t{1} << 48) - 1;

  const fs::path& path_;
  State state_ = State::start;
  SafetensorsHeader header_;
  StoredTensor entry_;
  std::vector<std::uint64_t> offsets_;
  std::string metadata_key_;
  bool saw_metadata_ = false, saw_type_ = false, saw_shape_ = false, saw_offsets_ = false;
};

void check_names_differ(const std::vector<StoredTensor>& tensors, const fs::path& path) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const StoredTensor& tensor : tensors) names.push_back(tensor.name);
  if (const auto twice = duplicate_name(std::move(names)))
    refuse_safetensors(path, "it has the tensor " + in_quotes(*twice) + " twice");
}

/// The tensors, ordered by position, must cover the data without a hole.
void check_coverage(const std::vector<StoredTensor>& tensors, std::uint64_t data_bytes, const fs::path& path) {
  std::uint64_t covered = 0;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.begin != covered)
      refuse_safetensors(path, std::string(tensor.begin > covered ? "it has a hole" : "its tensors overlap") +
                                   " at byte " + std::to_string(std::min(tensor.begin, covered)) +
                                   " of its data, before " + in_quotes(tensor.name));
    covered = tensor.end;
  }
  if (covered != data_bytes)
    refuse_safetensors(
        path, "its tensors have " + std::to_string(covered) + " bytes, its data has " + std::to_string(data_bytes));
}

SafetensorsHeader parse_header(std::string_view text, std::uint64_t data_bytes, const fs::path& path) {
  if (!text.starts_with('{')) refuse_safetensors(path, "its header does not begin with '{'");
  if (const auto last = text.find_last_not_of(' '); text[last] != '}')
    refuse_safetensors(path, "its header is padded with something other than spaces");
  if (text.find('\0') != text.npos) refuse_safetensors(path, "its header contains a zero byte");
  HeaderParser parser(path);
  nlohmann::json::sax_parse(text.begin(), text.end(), &parser);
  SafetensorsHeader header = parser.take();
  std::ranges::sort(header.tensors, [](const StoredTensor& a, const StoredTensor& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_names_differ(header.tensors, path);
  check_coverage(header.tensors, data_bytes, path);
  return header;
}

/// Reads N, and checks it before memory is taken for the header.
std::uint64_t read_header_bytes(const InputFile& file, const fs::path& path) {
  if (file.size() < kPrefixBytes) refuse_safetensors(path, "it is shorter than 8 bytes");
  const auto header_bytes = get_little_endian<std::uint64_t>(read_text(file, path, 0, kPrefixBytes), 0);
  if (header_bytes > file.size() - kPrefixBytes || header_bytes == 0)
    refuse_safetensors(
        path, "its header has " + std::to_string(header_bytes) + " bytes, in a file of " + std::to_string(file.size()));
  if (header_bytes > kLargestHeaderBytes)
    throw CheckpointError(path, "has a header of " + std::to_string(header_bytes) + " bytes",
                          "at most " + std::to_string(kLargestHeaderBytes) + " are supported: split the file");
  return header_bytes;
}

void check_tensor(const TensorRecord& tensor) {
  const auto defect = name_defect(tensor.name);
  check(defect.empty(), "the tensor name " + in_quotes(tensor.name) + " " + std::string(defect));
  check(byte_size(tensor.type, tensor.shape) == tensor.bytes.size(),
        in_quotes(tensor.name) + " has " + std::to_string(tensor.bytes.size()) + " bytes, which is not " +
            shape_text(tensor.shape) + " of " + std::string(names_of(tensor.type).safetensors));
}

/// N, the JSON, and spaces up to a multiple of 8.
std::string head_of(const nlohmann::ordered_json& header) try {
  std::string json = header.dump(), head;
  json.resize((json.size() + 7) / 8 * 8, ' ');
  put_little_endian(head, std::uint64_t{json.size()});
  return head + json;
} catch (const nlohmann::ordered_json::type_error&) {
  throw InvalidArgument("a tensor's name, or the metadata of its file, is not UTF-8");
}

}  // namespace

SafetensorsReader::SafetensorsReader(std::unique_ptr<InputFile> file, fs::path path)
    : file_(std::move(file)), path_(std::move(path)) {
  head_ = read_text(*file_, path_, 0, kPrefixBytes + read_header_bytes(*file_, path_));
  header_ = parse_header(std::string_view(head_).substr(kPrefixBytes), file_->size() - head_.size(), path_);
}

TensorRecord SafetensorsReader::read(const StoredTensor& tensor) const {
  return {tensor, read_bytes(*file_, path_, head_.size() + tensor.begin, tensor.end - tensor.begin)};
}

std::vector<TensorRecord> read_safetensors(FileSystem& files, const fs::path& path) {
  const SafetensorsReader reader(open_to_read(files, path), path);
  std::vector<TensorRecord> records;
  for (const StoredTensor& tensor : reader.tensors()) records.push_back(reader.read(tensor));
  return records;
}

SafetensorsPlan plan_safetensors(std::span<const TensorRecord> tensors,
                                 const std::map<std::string, std::string>& metadata) {
  SafetensorsPlan plan;
  for (const TensorRecord& tensor : tensors) plan.order.push_back(&tensor);
  std::ranges::sort(plan.order, [](const TensorRecord* a, const TensorRecord* b) {
    const unsigned a_bits = names_of(a->type).bits, b_bits = names_of(b->type).bits;
    return std::tie(b_bits, a->name) < std::tie(a_bits, b->name);
  });
  auto header = nlohmann::ordered_json::object();
  header["__metadata__"] = metadata;
  header["__metadata__"]["format"] = "pt";  // required by PyTorch's tools
  std::uint64_t offset = 0;
  for (const TensorRecord* tensor : plan.order) {
    check_tensor(*tensor);
    check(!header.contains(tensor->name), "two tensors are named " + in_quotes(tensor->name));
    const std::uint64_t end = offset + tensor->bytes.size();
    header[tensor->name] = {
        {"dtype", names_of(tensor->type).safetensors}, {"shape", tensor->shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  plan.head = head_of(header);
  check(plan.head.size() <= kLargestHeaderBytes, "the tensors need a header above 4 MiB: use several files");
  return plan;
}

void write_safetensors(FileSystem& files, const fs::path& path, const SafetensorsPlan& plan) {
  const auto file = files.create(path);
  write_all(*file, path, bytes_of(plan.head));
  for (const TensorRecord* tensor : plan.order) write_all(*file, path, tensor->bytes);
  file->sync();
  file->close();
}

}  // namespace gradring::train
