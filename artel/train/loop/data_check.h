// Verifies that all workers read the same files. Internal to train.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "artel/comm/group.h"
#include "artel/data/file_digests.h"
#include "artel/train/loop/agreement.h"

namespace artel {

class DataCheck {
 public:
  // Null without files to compare.
  explicit DataCheck(std::shared_ptr<data::FileDigests> files) : files_(std::move(files)) {}

  // Facts that a newcomer must match. Empty while this worker still reads its files.
  Facts facts() const;
  // Waits until all files have been read.
  void wait() const;
  // True if all of this worker's files have been read, so that newcomers can be compared with it.
  bool knows() const { return !files_ || files_->done(); }
  // Waits until all files have been read, one of them cannot be read, or `stop` returns true. Logs
  // the progress every ten seconds.
  void wait(const std::function<bool()>& stop) const;
  // Collective. If all workers have read their files and the files differ, returns the facts about
  // each file, for check_agreement. Otherwise empty on all workers. Throws on all workers, with the
  // worker and the file, if some worker cannot read a file. Allows a day for reading.
  std::optional<Facts> disputed(comm::Group& group);
  // True if some worker was still reading at the last comparison; the same on all workers.
  bool pending() const { return pending_; }

 private:
  std::shared_ptr<data::FileDigests> files_;
  bool pending_ = false;
};

}  // namespace artel
