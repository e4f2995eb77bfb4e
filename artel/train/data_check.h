// Makes sure that all workers read the same files. Internal to train.
#pragma once

#include <memory>
#include <optional>

#include "artel/comm/group.h"
#include "artel/data/file_digests.h"
#include "artel/train/agreement.h"

namespace artel {

class DataCheck {
 public:
  // Null: there are no files to compare.
  explicit DataCheck(std::shared_ptr<data::FileDigests> files) : files_(std::move(files)) {}

  // What a newcomer must say of its files, which are read by then; nothing while they are read
  // here.
  Facts facts() const;
  // Returns when all files have been read.
  void wait() const;
  // Whether all of this worker's files have been read, so that newcomers can be compared with it.
  bool knows() const { return !files_ || files_->done(); }
  // Collective. If all workers have read their files, and these differ: the facts about each file,
  // for check_agreement, which names those that differ. Nothing on any worker otherwise.
  std::optional<Facts> disputed(comm::Group& group);
  // Whether some worker was still reading when they were last compared; the same on all.
  bool pending() const { return pending_; }

 private:
  std::shared_ptr<data::FileDigests> files_;
  bool pending_ = false;
};

}  // namespace artel
