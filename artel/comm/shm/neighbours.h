// The ranks on this machine, which exchange messages through shared memory instead of TCP.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "artel/base/mutex.h"
#include "artel/base/time.h"
#include "artel/comm/options.h"
#include "artel/comm/shm/mailbox.h"

namespace artel::comm::shm {

class Neighbours {
 public:
  // `ranks` are the ranks on the machine, in order, at least two. `name` is unique and equal on all
  // of them; `token` is the run's. `traffic` counts their messages and must outlive this object.
  // `meanwhile` is called periodically and may throw. Throws if not all ranks share memory before
  // the deadline.
  Neighbours(std::vector<int> ranks, int own_rank, const std::string& name,
             const std::string& token, Deadline deadline, std::function<void()> meanwhile,
             const TrafficMeter& traffic);
  ~Neighbours();

  // Call once for each other rank that shares the memory too.
  void add(int rank);
  bool includes(int rank) const { return place_of(rank) >= 0; }

  // Throws the error of the thread that moves messages, on this rank or another.
  void check() const { segment_.throw_if_failed(); }

  // Like the functions of Transport, for included ranks.
  std::unique_ptr<Transfer> send(int rank, uint64_t tag, std::span<const std::byte> data);
  std::unique_ptr<Transfer> receive(int rank, uint64_t tag, std::span<std::byte> data);

  // Messages make progress only while some thread waits for one of them. While this object lives,
  // they also make progress while its thread waits for something else.
  class Attention {
   public:
    explicit Attention(Neighbours* neighbours);
    ~Attention();
    Attention(const Attention&) = delete;
    Attention& operator=(const Attention&) = delete;

   private:
    Neighbours* neighbours_;  // null if no messages need progress
  };

 private:
  int place_of(int rank) const;
  void attend();

  std::vector<int> ranks_;
  std::vector<bool> included_;  // by place in ranks_
  Segment segment_;
  Mailbox mailbox_;
  Mutex mutex_;  // guards the members below
  Condition changed_;
  int wanted_ ARTEL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ARTEL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// A rank's machine and contact, as sent to the other ranks.
struct Whereabouts {
  std::string machine;  // "": one that shares no memory
  std::string contact;  // different for all ranks of all groups
};

// Finds the ranks that share memory with this one, among all ranks of a transport that can already
// exchange messages. Null without such ranks. `look` is called periodically and throws when the
// group can no longer be formed.
std::unique_ptr<Neighbours> meet_neighbours(Transport& transport,
                                            const std::vector<Whereabouts>& places,
                                            const GroupOptions& options,
                                            const std::function<void()>& look);

// Exchanges texts of equal length among `ranks` while a group forms. Returns the texts by rank.
std::vector<std::string> exchange_texts(Transport& transport, const std::vector<int>& ranks,
                                        const std::vector<std::string>& texts,
                                        std::string_view label, const GroupOptions& options);

}  // namespace artel::comm::shm
