// SPDX-License-Identifier: Apache-2.0
// What kernels call of the runtime.
#include "kernels/simulated_gpu/cudart/device_functions.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/simulated_gpu/cudart/runtime.h"
#include "kernels/simulated_gpu/machine/runtime_functions.h"

namespace gradring::simulated_gpu {

void DeviceOutput::print() {
  const std::lock_guard lock(mutex_);
  if (text_.empty()) return;
  std::fwrite(text_.data(), 1, text_.size(), stdout);
  text_.clear();
}

std::uint64_t DeviceHeap::allocate(std::size_t bytes, int device, std::size_t limit) {
  const std::lock_guard lock(mutex_);
  if (bytes == 0 || bytes > limit || used_ > limit - bytes) return 0;
  void* const data = addresses_.map(bytes);
  if (data == nullptr) return 0;
  memory_.add(data, bytes, device, false);
  used_ += bytes;
  const auto address = reinterpret_cast<std::uint64_t>(data);
  blocks_[address] = bytes;
  return address;
}

bool DeviceHeap::free(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return false;
  used_ -= found->second;
  blocks_.erase(found);
  memory_.remove(reinterpret_cast<void*>(address));
  addresses_.release(reinterpret_cast<void*>(address));
  return true;
}

namespace {

/// A conversion of a format: "%-8.3lld".
struct Conversion {
  std::string flags_and_width;  ///< with its '*' replaced
  std::string_view size;        ///< h, l, ll
  char type = 0;
};

template <class Value>
std::string printed(const Conversion& conversion, const char* size, Value value) {
  const std::string format = "%" + conversion.flags_and_width + size + conversion.type;
  const int length = std::snprintf(nullptr, 0, format.c_str(), value);
  std::string text(static_cast<std::size_t>(std::max(length, 0)) + 1, '\0');
  std::snprintf(text.data(), text.size(), format.c_str(), value);
  text.pop_back();
  return text;
}

class Formatter {
 public:
  Formatter(const std::function<void(std::size_t, void*, std::size_t)>& read_bytes,
            const std::function<std::string(std::uint64_t)>& read_string)
      : read_bytes_(read_bytes), read_string_(read_string) {}

  std::string run(std::string_view format) {
    std::string text;
    while (!format.empty()) {
      const std::size_t percent = std::min(format.find('%'), format.size());
      text += format.substr(0, percent);
      format.remove_prefix(percent);
      if (format.empty()) break;
      const std::string_view whole = format;
      format.remove_prefix(1);
      const Conversion conversion = read(format);
      text += convert(conversion, whole.substr(0, whole.size() - format.size()));
    }
    return text;
  }
  int count() const { return count_; }

 private:
  template <class T>
  T take() {
    offset_ = (offset_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value;
    read_bytes_(offset_, &value, sizeof value);
    offset_ += sizeof value;
    ++count_;
    return value;
  }

  Conversion read(std::string_view& format) {
    Conversion made;
    while (!format.empty() && std::string_view("-+ #0123456789.*").find(format[0]) != std::string_view::npos) {
      made.flags_and_width += format[0] == '*' ? std::to_string(take<int>()) : std::string(1, format[0]);
      format.remove_prefix(1);
    }
    const std::size_t size = std::min(format.find_first_not_of("hljztL"), format.size());
    made.size = format.substr(0, size);
    format.remove_prefix(size);
    if (!format.empty()) made.type = format[0];
    format.remove_prefix(format.empty() ? 0 : 1);
    return made;
  }

  std::string convert(const Conversion& conversion, std::string_view whole) {
    const bool is_long = conversion.size.find_first_of("ljzt") != std::string_view::npos;
    switch (conversion.type) {
      case '%': return "%";
      case 'd':
      case 'i':
        if (is_long) return printed(conversion, "ll", take<long long>());
        return printed(conversion, std::string(conversion.size).c_str(), take<int>());
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        if (is_long) return printed(conversion, "ll", take<unsigned long long>());
        return printed(conversion, "", take<unsigned>());
      case 'c': return printed(conversion, "", take<int>());
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A': return printed(conversion, "", take<double>());
      case 'p': return printed(conversion, "", reinterpret_cast<void*>(take<std::uint64_t>()));
      case 's': return printed(conversion, "", read_string_(take<std::uint64_t>()).c_str());
      default: return std::string(whole);  // CUDA writes what it does not know as it is
    }
  }

  const std::function<void(std::size_t, void*, std::size_t)>& read_bytes_;
  const std::function<std::string(std::uint64_t)>& read_string_;
  std::size_t offset_ = 0;
  int count_ = 0;
};

void print(Runtime& rt, RuntimeCall& call) {
  const auto format = call.argument<std::uint64_t>(0);
  const auto arguments = call.argument<std::uint64_t>(1);
  if (format == 0) return call.set_result<std::int32_t>(-1);
  int count = 0;
  rt.output.add(formatted(
      call.string_at(format),
      [&](std::size_t offset, void* to, std::size_t bytes) {
        std::ranges::copy(call.read(arguments + offset, bytes), static_cast<std::byte*>(to));
      },
      [&](std::uint64_t address) { return address == 0 ? "(null)" : call.string_at(address); }, count));
  call.set_result<std::int32_t>(count);
}

std::string text_of(const Extent& extent) { return joined("[", extent.x, ",", extent.y, ",", extent.z, "]"); }

/// CUDA's text, and the device fails.
void fail_assertion(Runtime& rt, RuntimeCall& call) {
  const std::string message = call.string_at(call.argument<std::uint64_t>(0));
  const std::string file = call.string_at(call.argument<std::uint64_t>(1));
  const auto line = call.argument<std::uint32_t>(2);
  const std::string function = call.string_at(call.argument<std::uint64_t>(3));
  std::fprintf(stderr, "%s:%u: %s: block: %s, thread: %s Assertion `%s` failed.\n", file.c_str(), line,
               function.c_str(), text_of(call.block()).c_str(), text_of(call.thread()).c_str(), message.c_str());
  rt.device(call.device()).note_failed_assertion();
  call.fail("assertion failed: " + message);
}

}  // namespace

std::string formatted(const std::string& format,
                      const std::function<void(std::size_t offset, void* to, std::size_t bytes)>& read_bytes,
                      const std::function<std::string(std::uint64_t address)>& read_string, int& count) {
  Formatter formatter(read_bytes, read_string);
  std::string text = formatter.run(format);
  count = formatter.count();
  return text;
}

RuntimeFunctions device_functions(Runtime& rt) {
  return {
      {"vprintf", [&rt](RuntimeCall& call) { print(rt, call); }},
      {"__assertfail", [&rt](RuntimeCall& call) { fail_assertion(rt, call); }},
      {"malloc",
       [&rt](RuntimeCall& call) {
         call.set_result<std::uint64_t>(
             rt.heap.allocate(call.argument<std::uint64_t>(0), call.device(), rt.limits.at(cudaLimitMallocHeapSize)));
       }},
      {"free",
       [&rt](RuntimeCall& call) {
         const auto address = call.argument<std::uint64_t>(0);
         if (address != 0 && !rt.heap.free(address))
           call.fail("free of an address that malloc did not return, or that was freed: " +
                     rt.memory.describe(address, 1));
       }},
  };
}

}  // namespace gradring::simulated_gpu
