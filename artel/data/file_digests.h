// Digests of all files that a run reads, to verify that all workers read the same data.
//
// Digests are cached on this machine by path, size, and modification times. Small amounts of data
// are read immediately, large ones in the background. A read error in the background ends the
// reading; `failure` returns it.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace artel::data {

struct FileDigest {
  std::string name;  // relative to the path it was found by
  uint64_t bytes = 0;
  std::string digest;  // prefix of a SHA-256
};

struct FileDigestOptions {
  std::filesystem::path cache;  // folder for cached digests; empty turns caching off
  // If more bytes than this have no cached digest, they are read in the background.
  uint64_t most_at_once = uint64_t{512} << 20;
};

// Thread safe once constructed.
class FileDigests {
 public:
  // Covers all files at these paths: files, patterns, or folders including subfolders.
  FileDigests(const std::vector<std::filesystem::path>& paths, FileDigestOptions options);
  // Cancels a background read.
  ~FileDigests();
  FileDigests(const FileDigests&) = delete;
  FileDigests& operator=(const FileDigests&) = delete;

  bool done() const { return state_ == State::done; }
  // The error of a file that could not be read in the background; empty without one.
  std::string failure() const { return state_ == State::failed ? failure_text_ : ""; }
  // Waits until all files have been read. Throws if one of them cannot be read.
  void wait();
  // Number of bytes to read because their digests were not cached, and of those read so far.
  uint64_t bytes_read() const { return bytes_read_; }
  uint64_t bytes_finished() const { return bytes_finished_; }
  // Combined digest of all names and contents; 0 before it is complete.
  uint64_t digest() const { return done() ? digest_ : 0; }
  // Files ordered by name. Complete after `wait`.
  const std::vector<FileDigest>& files() const { return files_; }

 private:
  struct Source;
  enum class State { reading, done, failed };
  void read_all();

  const FileDigestOptions options_;
  std::vector<Source> sources_;
  std::vector<FileDigest> files_;
  uint64_t digest_ = 0, bytes_read_ = 0;
  std::atomic<uint64_t> bytes_finished_{0};
  std::atomic<State> state_{State::reading};
  std::atomic<bool> stopping_{false};
  // Set before the state becomes `failed`.
  std::exception_ptr failure_;
  std::string failure_text_;
  std::thread thread_;
};

}  // namespace artel::data
