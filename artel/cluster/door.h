// Where the other workers of a run find this one when their group has broken, and where newcomers
// ask to be let in: a listening socket with a thread of its own, which lives as long as the worker.
//
// Whoever knocks hears from the thread twice a second for as long as this process is not stopped,
// so it can tell a worker that computes from one that hangs. A process that has died refuses
// connections, at once. Thread safe.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <list>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "artel/comm/control/strangers.h"

namespace artel {

class Door {
 public:
  // Listens there (port 0: at any free one). Throws if it cannot, and if there is no token for an
  // address that other users or machines can reach.
  Door(const comm::control::Endpoint& place, const std::string& token, bool encrypt = false);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  // What others connect to.
  const std::string& address() const { return address_; }
  const comm::RunSecret& secret() const { return secret_; }

  // Opens a second entrance there if nobody else listens at it; returns whether it is open.
  bool open_also_at(const comm::control::Endpoint& place);

  // The membership of this worker, by rank, its own number in it, and the next newcomer's. Whoever
  // belongs to an earlier one and is not among them is told that the run goes on without it.
  // Newcomers are sent to the first of them.
  void set_membership(int64_t generation, const std::vector<comm::control::Participant>& members,
                      int own, int next_number);

  struct Guest {
    int64_t id = 0;
    comm::control::Knock knock;
    bool told = false, agreed = false;
  };
  // Members who wait to enter, have been told nothing yet and have not hung up. Throws what has
  // ended the thread.
  std::vector<Guest> guests() { return waiting(comm::control::Knock::Wish::enter); }
  // The same of those who want to become members.
  std::vector<Guest> newcomers() { return waiting(comm::control::Knock::Wish::join); }
  // All members that wait at this door, also those that were told something.
  std::vector<Guest> members_here();
  // Members that have knocked since the last call, for whatever reason.
  std::set<int> take_callers();
  // The number of the leader that visitors hear of; -1: unknown.
  void set_leader(int number);
  // Whether there may be newcomers or guests; costs nothing.
  bool has_newcomers() const { return newcomers_ > 0; }
  // Members who have said that they leave.
  bool has_left(int number);
  // Whether somebody wants this worker to leave.
  bool dismissed() const { return dismissed_; }
  void tell(int64_t guest, const comm::control::Frame& frame);
  // Whether a guest has not hung up, told or not.
  bool is_here(int64_t guest);
  // Hangs up on all guests, or on those that were told something.
  void dismiss();
  void dismiss_told();
  // Returns when a guest has come or gone, or after this many seconds.
  void wait(double seconds);

 private:
  struct Visitor : comm::control::Link {
    using Link::Link;
    int64_t id = 0;
    bool wants_in = false, told = false, agreed = false;
    comm::control::Knock knock;
  };

  std::vector<Guest> waiting(comm::control::Knock::Wish wish);
  void work();
  void serve_strangers();
  void greet(Visitor& stranger, const comm::control::Frame& frame);
  void serve_visitors(bool beats);
  void receive(Visitor& visitor);
  std::string objection(const comm::control::Knock& knock) const;
  std::vector<std::string> doors() const;
  bool leads() const;
  void note_change();
  void wake();

  const comm::RunSecret secret_;
  comm::FileHandle listener_;
  std::string address_;
  comm::FileHandle bell_;  // wakes the thread
  std::atomic<bool> stopping_{false}, dismissed_{false};
  std::atomic<int> newcomers_{0};
  // Connections that have not proved themselves. Only the thread uses them, without the mutex, so
  // that they cannot keep the worker waiting.
  std::list<Visitor> strangers_;
  comm::control::Strangers limits_;

  std::mutex mutex_;  // protects what follows
  std::condition_variable changed_;
  int64_t changes_ = 0, seen_ = 0;
  std::exception_ptr failure_;  // of the thread
  comm::FileHandle second_listener_;
  int64_t generation_ = 0;
  std::vector<comm::control::Participant> members_;
  int own_ = -1, next_number_ = 0;
  std::set<int> left_, callers_;
  int leader_ = -1;
  int64_t visitors_ever_ = 0;
  std::list<Visitor> visitors_;  // have proved that they know the token, and have knocked

  std::thread thread_;
};

}  // namespace artel
