// Digests of all files that a run reads, by which workers find out whether they read the same.
//
// A digest is computed once and kept on this machine, by the path of the file, its size and the
// times of its last changes. A few files are read at once; many bytes are read in the background.
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
  std::string digest;  // the beginning of a SHA-256
};

struct FileDigestOptions {
  std::filesystem::path cache;  // a folder for known digests; empty: none are kept
  // More bytes without a known digest than this are read in the background.
  uint64_t most_at_once = uint64_t{512} << 20;
};

// Thread safe once constructed.
class FileDigests {
 public:
  // All files at these paths: files, patterns, or folders with all that is below them.
  FileDigests(const std::vector<std::filesystem::path>& paths, FileDigestOptions options);
  // Gives up what is still being read.
  ~FileDigests();
  FileDigests(const FileDigests&) = delete;
  FileDigests& operator=(const FileDigests&) = delete;

  bool done() const { return done_; }
  // Returns when all files have been read. Throws if one of them cannot be.
  void wait();
  // The bytes that had to be read, because their digests were not known.
  uint64_t bytes_read() const { return bytes_read_; }
  // Of all names and contents together; 0 before it is done.
  uint64_t digest() const { return done_ ? digest_ : 0; }
  // In the order of their names; complete when it is done.
  const std::vector<FileDigest>& files() const { return files_; }

 private:
  struct Source;
  void read_all();

  const FileDigestOptions options_;
  std::vector<Source> sources_;
  std::vector<FileDigest> files_;
  uint64_t digest_ = 0, bytes_read_ = 0;
  std::atomic<bool> done_{false}, stopping_{false};
  std::exception_ptr failure_;  // of the thread; read after joining it
  std::thread thread_;
};

}  // namespace artel::data
