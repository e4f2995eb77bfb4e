// The ranks on this machine, which exchange messages through shared memory instead of TCP.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "artel/base/time.h"
#include "artel/comm/options.h"
#include "artel/comm/shm/mailbox.h"

namespace artel::comm::shm {

class Neighbours {
 public:
  // `ranks` are those on the machine, in order, at least two; `name` is the same on all of them and
  // unique, `token` the run's. `traffic` counts their messages and outlives this object. Throws if
  // they do not all share memory before the deadline, or what `meanwhile` throws, which is called
  // now and then.
  Neighbours(std::vector<int> ranks, int own_rank, const std::string& name,
             const std::string& token, Deadline deadline, std::function<void()> meanwhile,
             const TrafficMeter& traffic);
  ~Neighbours();

  // Call once for each other rank that shares the memory too.
  void add(int rank);
  bool includes(int rank) const { return place_of(rank) >= 0; }

  // Throws what the thread that moves messages meanwhile has failed with, on this rank or another.
  void check() const { segment_.throw_if_failed(); }

  // Like those of Transport, for ranks that are included.
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
    Neighbours* neighbours_;  // none if there is nothing to move
  };

 private:
  int place_of(int rank) const;
  void attend();

  std::vector<int> ranks_;
  std::vector<bool> included_;  // by place in ranks_
  Segment segment_;
  Mailbox mailbox_;
  std::mutex mutex_;  // protects what follows
  std::condition_variable changed_;
  int wanted_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

// Where a rank is, as it tells the others.
struct Whereabouts {
  std::string machine;  // "": one that shares no memory
  std::string contact;  // different for all ranks of all groups
};

// Finds the ranks on this rank's machine that share memory with it, of all ranks of a transport
// that can exchange messages already; nothing if there are none. `look` is called now and then, and
// throws when the group cannot be formed any more.
std::unique_ptr<Neighbours> meet_neighbours(Transport& transport,
                                            const std::vector<Whereabouts>& places,
                                            const GroupOptions& options,
                                            const std::function<void()>& look);

// While a group forms: gives each of these ranks its text (all are of one length), and returns
// theirs, by rank.
std::vector<std::string> exchange_texts(Transport& transport, const std::vector<int>& ranks,
                                        const std::vector<std::string>& texts,
                                        std::string_view label, const GroupOptions& options);

}  // namespace artel::comm::shm
