// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD (scripts/list_messages.sh): writes one line for each exception that gradring or one of its
// tests throws, "TYPE<tab>what()", and for each text on stderr, "stderr<tab>text", to the FIFO that RECORDED_MESSAGES
// names. Line ends within become "\n". A FIFO, because tests limit the size of files.
#include <cxxabi.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string_view>
#include <typeinfo>

namespace {

bool is_recorded_program() {
  const std::string_view name = program_invocation_short_name;
  return name.starts_with("gradring") || name.starts_with("test_") || name == "launch_probe";
}

template <class F>
F* next_of(F* /*function*/, const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

/// Async-signal-safe. One write of at most PIPE_BUF bytes, so lines of several processes do not mix.
void record(std::string_view kind, std::string_view text) {
  const int saved_errno = errno;
  static const bool recorded = is_recorded_program();
  const char* fifo = std::getenv("RECORDED_MESSAGES");
  const int fd = recorded && fifo != nullptr ? ::open(fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC) : -1;
  if (fd >= 0) {
    ::fcntl(fd, F_SETFL, 0);  // now that there is a reader, wait for it
    std::array<char, PIPE_BUF> line;
    std::size_t size = 0;
    const auto append = [&](char c) { line[size++] = c; };
    for (const char c : kind) append(c);
    append('\t');
    for (const char c : text.substr(0, (line.size() - kind.size() - 2) / 2)) {
      if (c == '\n') append('\\');
      append(c == '\n' ? 'n' : c);
    }
    append('\n');
    static auto* const write = next_of(&::write, "write");
    [[maybe_unused]] const ssize_t written = write(fd, line.data(), size);
    ::close(fd);
  }
  errno = saved_errno;
}

}  // namespace

extern "C" [[noreturn]] void __cxa_throw(void* object, std::type_info* type, void (*destructor)(void*)) {
  void* base = object;
  if (typeid(std::exception).__do_catch(type, &base, 1)) {
    char* name = abi::__cxa_demangle(type->name(), nullptr, nullptr, nullptr);
    record(name != nullptr ? name : type->name(), static_cast<std::exception*>(base)->what());
    std::free(name);
  }
  next_of(&__cxa_throw, "__cxa_throw")(object, type, destructor);
  std::abort();
}

extern "C" ssize_t write(int fd, const void* data, std::size_t size) {
  if (fd == STDERR_FILENO) record("stderr", {static_cast<const char*>(data), size});
  static auto* const next = next_of(&::write, "write");
  return next(fd, data, size);
}
