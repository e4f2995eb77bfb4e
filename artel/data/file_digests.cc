#include "artel/data/file_digests.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <sstream>

#include "artel/base/digest.h"
#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/random.h"
#include "artel/data/files.h"

namespace artel::data {

namespace fs = std::filesystem;

// A file with the attributes that reveal changes.
struct FileDigests::Source {
  fs::path path;
  std::string stamp;  // inode, size and times; empty: it has changed too recently to rely on them
};

namespace {

constexpr size_t kPieceBytes = 16 << 20, kDigestLetters = 16;
constexpr const char* kCacheVersion = "1";

struct Stamp {
  uint64_t bytes = 0;
  std::string text;
};

// The time of the last change of the inode cannot be set back, unlike that of the content. A file
// may change again within one tick of the clock, so a new file has no stamp.
Stamp stamp_of(const fs::path& path) {
  struct stat status {};
  require(::stat(path.c_str(), &status) == 0, ErrorKind::io, "[{}] cannot be read", path.string());
  constexpr int64_t kNewSeconds = 1;
  const bool is_new = ::time(nullptr) - status.st_ctim.tv_sec <= kNewSeconds;
  return {static_cast<uint64_t>(status.st_size),
          is_new ? ""
                 : fmt::format("{}:{}:{}.{}:{}.{}", status.st_ino, status.st_size,
                               status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
                               status.st_ctim.tv_nsec)};
}

// Empty if it was stopped. Adds the bytes of each finished piece to `finished`.
std::string content_digest(const fs::path& path, const std::atomic<bool>& stopping,
                           std::atomic<uint64_t>& finished) {
  const MappedFile file(path);
  std::string digests;
  for (std::span<const std::byte> rest = file.bytes(); !rest.empty();) {
    if (stopping) return "";
    const std::span<const std::byte> piece = rest.first(std::min(rest.size(), kPieceBytes));
    digests += sha256(piece);
    finished += piece.size();
    rest = rest.subspan(piece.size());
  }
  return sha256(std::as_bytes(std::span(digests))).substr(0, kDigestLetters);
}

// Known digests by the path of the file and its stamp: a file for each list of paths.
class DigestCache {
 public:
  DigestCache(const fs::path& folder, const std::vector<fs::path>& paths) {
    if (folder.empty()) return;
    std::string all;
    for (const fs::path& path : paths) all += fs::absolute(path).string() + "\n";
    file_ = folder / fmt::format("{:016x}.txt", hash_name(all));
  }
  std::map<std::string, std::string> load() const {
    std::map<std::string, std::string> known;  // by stamp and path
    std::error_code ignored;
    if (file_.empty() || !fs::exists(file_, ignored)) return known;
    std::istringstream lines(read_file(file_));
    std::string version, digest, key;
    std::getline(lines, version);
    if (version != kCacheVersion) return known;
    while (lines >> digest && std::getline(lines >> std::ws, key)) known[key] = digest;
    return known;
  }
  // Ignores write errors: missing digests are computed again.
  void save(const std::map<std::string, std::string>& known) const {
    if (file_.empty()) return;
    std::string text = std::string(kCacheVersion) + "\n";
    for (const auto& [key, digest] : known) text += digest + " " + key + "\n";
    try {
      fs::create_directories(file_.parent_path());
      write_file_atomically(file_, text);
    } catch (const std::exception& error) {
      log(LogLevel::debug, "digests of files are not kept: {}", error.what());
    }
  }
  static std::string key(const std::string& stamp, const fs::path& path) {
    return stamp + " " + path.string();
  }

 private:
  fs::path file_;
};

}  // namespace

FileDigests::FileDigests(const std::vector<fs::path>& paths, FileDigestOptions options)
    : options_(std::move(options)) {
  const DigestCache cache(options_.cache, paths);
  const std::map<std::string, std::string> known = cache.load();
  const fs::path here = fs::current_path();  // asking for it for each file would take longest
  for (const fs::path& path : paths)
    for (const auto& [file, name] : files_at(path)) {
      const Stamp stamp = stamp_of(file);
      const auto found = known.find(DigestCache::key(stamp.text, here / file));
      const bool is_known = !stamp.text.empty() && found != known.end();
      sources_.push_back({file, stamp.text});
      files_.push_back({name, stamp.bytes, is_known ? found->second : ""});
      if (!is_known) bytes_read_ += stamp.bytes;
    }
  const auto work = [this, cache, here] {
    read_all();
    if (stopping_) return;
    for (const FileDigest& file : files_)
      digest_ = mix_key({digest_, hash_name(file.name), hash_name(file.digest)});
    std::map<std::string, std::string> all;
    for (size_t i = 0; bytes_read_ > 0 && i < sources_.size(); ++i)
      if (!sources_[i].stamp.empty())
        all[DigestCache::key(sources_[i].stamp, here / sources_[i].path)] = files_[i].digest;
    if (!all.empty()) cache.save(all);
    state_ = State::done;
  };
  if (bytes_read_ <= options_.most_at_once) {
    work();
    return;
  }
  thread_ = std::thread([this, work] {
    ::setpriority(PRIO_PROCESS, 0, 19);  // of this thread: training comes first
    try {
      work();
    } catch (const std::exception& error) {
      failure_ = std::current_exception();
      failure_text_ = error.what();
      state_ = State::failed;
    }
  });
}

FileDigests::~FileDigests() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void FileDigests::wait() {
  if (thread_.joinable()) thread_.join();
  if (failure_) std::rethrow_exception(failure_);
}

void FileDigests::read_all() {
  for (size_t i = 0; i < files_.size() && !stopping_; ++i) {
    if (!files_[i].digest.empty()) continue;
    files_[i].digest = content_digest(sources_[i].path, stopping_, bytes_finished_);
    if (stamp_of(sources_[i].path).text != sources_[i].stamp) sources_[i].stamp.clear();
  }
}

}  // namespace artel::data
