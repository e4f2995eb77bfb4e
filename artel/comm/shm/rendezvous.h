// Gives processes on one machine a common file. Rank 0 listens on a local socket with the group's
// name and hands the file to each process of the same user that proves to know the token.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "artel/base/time.h"
#include "artel/comm/connection/file_handle.h"

namespace artel::comm::shm {

struct Invitation {
  std::string token;
  int size = 0;
  size_t arena_bytes = 0;
  std::function<void()> meanwhile = {};  // called periodically; ends the wait by throwing
};

struct Request {
  std::string token;
  int size = 0;
  int rank = 0;
  std::function<void()> meanwhile = {};
};

struct Admission {
  FileHandle file;
  size_t arena_bytes = 0;
};

// Rank 0's side. Throws if the name is taken.
class Host {
 public:
  Host(std::string name, Deadline deadline);
  // Gives `file` to ranks 1 .. size-1. Throws at the deadline. Refuses a process that does not
  // belong to the group, with a reason, without disturbing the others.
  void admit_all(const Invitation& invitation, int file);

 private:
  std::string name_;
  Deadline deadline_;
  FileHandle socket_;
};

// The other ranks' side. Throws at the deadline, or with the reason if refused.
Admission ask_to_join(const std::string& name, const Request& request, Deadline deadline);

}  // namespace artel::comm::shm
