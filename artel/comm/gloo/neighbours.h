// The ranks of this machine, which exchange messages through shared memory instead of TCP.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "artel/base/time.h"
#include "artel/comm/shm/mailbox.h"

namespace artel::comm::gloo {

class Neighbours {
 public:
  // `ranks` are those of the machine, in order and more than one; `name` is the same on all of them
  // and nowhere else. Throws if they do not all come to share memory before the deadline.
  Neighbours(std::vector<int> ranks, int own_rank, const std::string& name, Deadline deadline);
  ~Neighbours();

  // Once for each of the others: it shares the memory too.
  void add(int rank);
  bool includes(int rank) const { return place_of(rank) >= 0; }

  // As those of Transport, for ranks that are included.
  std::unique_ptr<Transfer> send(int rank, uint64_t tag, std::span<const std::byte> data);
  std::unique_ptr<Transfer> receive(int rank, uint64_t tag, std::span<std::byte> data);

  // Messages move on when somebody waits for one of them. While this lives they also do while its
  // thread waits for something else.
  class Attention {
   public:
    explicit Attention(Neighbours* neighbours);
    ~Attention();
    Attention(const Attention&) = delete;
    Attention& operator=(const Attention&) = delete;

   private:
    Neighbours* neighbours_;  // none if there is nothing to move
  };

 private:
  int place_of(int rank) const;
  void attend();

  std::vector<int> ranks_;
  std::vector<bool> included_;  // by place in ranks_
  shm::Segment segment_;
  shm::Mailbox mailbox_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  int wanted_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace artel::comm::gloo
