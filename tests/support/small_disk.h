// A file system of one megabyte, to see what happens when it is full.
#pragma once

#include <sched.h>
#include <sys/mount.h>

#include "tests/support/temporary_folder.h"

namespace artel {

// In a mount namespace of this process, so that it ends with it at the latest. Only root can.
class SmallDisk {
 public:
  SmallDisk()
      : mounted_(::unshare(CLONE_NEWNS) == 0 &&
                 ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                 ::mount("tmpfs", path().c_str(), "tmpfs", 0, "size=1m") == 0) {}
  ~SmallDisk() {
    if (mounted_) ::umount2(path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
  bool mounted_;
};

}  // namespace artel
