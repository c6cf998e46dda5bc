// SPDX-License-Identifier: Apache-2.0
#include "data/fetch/download.h"

#include <vector>

#include "data/error.h"
#include "data/fetch/error.h"
#include "data/fetch/part_file.h"
#include "kernels/runtime/error.h"

namespace gradring::data {
namespace {

constexpr long kRangeNotSatisfiable = 416;
/// How often an address that broke off, but sent something, is asked to go on.
constexpr int kMostContinuations = 4;

/// What came is not the file.
class WrongContent final : public Error {
 public:
  using Error::Error;
};

/// Puts what arrives into the part.
class Arrival final : public HttpBody {
 public:
  Arrival(PartFile& part, const KnownFile& file, FetchListener& listener)
      : part_(part), file_(file), listener_(listener) {}

  void begin(std::uint64_t offset) override {
    if (offset == part_.size()) return;
    check<FetchError>(offset == 0, "the server sent another range than it was asked for");
    part_.clear();  // it knows no ranges
  }

  void write(std::span<const std::byte> bytes) override {
    if (part_.size() + bytes.size() > file_.bytes)
      throw WrongContent("it is longer than " + std::to_string(file_.bytes) + " bytes");
    part_.append(bytes);
    listener_.arrived(part_.size(), file_.bytes);
  }

 private:
  PartFile& part_;
  const KnownFile& file_;
  FetchListener& listener_;
};

class Download {
 public:
  Download(const DownloadSpec& spec, FetchListener& listener)
      : spec_(spec), listener_(listener), part_(spec.folder / spec.file.name) {}

  void run() {
    for (const std::string& mirror : spec_.mirrors) {
      const std::string url = mirror + (mirror.ends_with('/') ? "" : "/") + std::string(spec_.file.name);
      if (try_address(url)) return part_.publish();
    }
    give_up();
  }

 private:
  /// Whether the part is now the whole file.
  bool try_address(const std::string& url) {
    try {
      const bool resumed = part_.size() > 0;
      try {
        get_and_check(url);
      } catch (const WrongContent&) {
        if (!resumed) throw;
        part_.clear();
        get_and_check(url);
      }
      return true;
    } catch (const DiskError&) {
      throw;
    } catch (const WrongContent& error) {
      part_.clear();
      wrong_content_ = true;
      note(url, error.what());
    } catch (const FetchError& error) {
      note(url, error.what());
    }
    return false;
  }

  void get_and_check(const std::string& url) {
    if (part_.size() > spec_.file.bytes) part_.clear();
    if (part_.size() < spec_.file.bytes) get(url);
    const FileCheck found = part_.check(spec_.file);
    if (found.state != FileState::good) throw WrongContent("what came " + found.found);
  }

  void get(const std::string& url) {
    for (int continuations = 0;; ++continuations) {
      const std::uint64_t begin = part_.size();
      listener_.asking(spec_.file.name, url, begin);
      try {
        Arrival arrival(part_, spec_.file, listener_);
        return http_get({.url = url, .begin = begin, .timeouts = spec_.timeouts}, arrival);
      } catch (const DiskError&) {
        throw;
      } catch (const HttpStatusError& error) {
        if (error.status() != kRangeNotSatisfiable || begin == 0 || continuations == kMostContinuations) throw;
        part_.clear();  // the server's file is shorter than our part
      } catch (const FetchError&) {
        if (part_.size() <= begin || continuations == kMostContinuations) throw;
      }
    }
  }

  void note(const std::string& url, const std::string& why) {
    listener_.failed(url, why);
    failures_ += "\n  " + url + ": " + why;
  }

  [[noreturn]] void give_up() {
    const bool part_stays = part_.size() > 0;
    if (!part_stays) part_.remove();
    const std::filesystem::path target = spec_.folder / spec_.file.name;
    const std::string tried = "could not be fetched:" + failures_;
    if (wrong_content_)
      throw DataError(target, tried + "\nNone sent the right file",
                      "name another place that has it with --mirror, or put the file there yourself");
    throw FetchError(target.string() + ": " + tried +
                     "\nCheck the network (and https_proxy), or name another place that has it with --mirror" +
                     (part_stays ? "; what has come stays, and the next try goes on from there" : ""));
  }

  const DownloadSpec& spec_;
  FetchListener& listener_;
  PartFile part_;
  std::string failures_;
  bool wrong_content_ = false;
};

}  // namespace

void download(const DownloadSpec& spec, FetchListener& listener) {
  check(!spec.mirrors.empty(), "there is no mirror to fetch " + std::string(spec.file.name) + " from");
  Download(spec, listener).run();
  listener.done(spec.file.name);
}

}  // namespace gradring::data
