// A worker's door: a listening socket with its own thread, at which the other workers find this one
// after their group has failed, and newcomers ask to join. It lives as long as the worker.
//
// The thread sends a heartbeat to every visitor twice a second, so a visitor can distinguish a
// computing worker from a hung one. A dead process refuses connections immediately. Thread safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <list>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "artel/base/mutex.h"
#include "artel/comm/control/strangers.h"

namespace artel {

class Door {
 public:
  // Listens at `place`; port 0 selects a free port. Throws if it cannot listen, or if the token is
  // empty and other users or machines can reach the address.
  Door(const comm::control::Endpoint& place, const std::string& token, bool encrypt = false);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  // The address for other workers.
  const std::string& address() const { return address_; }
  const comm::RunSecret& secret() const { return secret_; }

  // Also listens at `place` if the address is free. Returns true if the door is open there. Call
  // from one thread only.
  bool open_also_at(const comm::control::Endpoint& place);

  // Sets this worker's membership: the members by rank, its own number, and the next newcomer's
  // number. Members of an earlier membership that are missing are told that the run continues
  // without them. Without members, this worker is outside, and members that listen here learn not
  // to wait for it. Newcomers are sent to the first member.
  void set_membership(int64_t generation, const std::vector<comm::control::Participant>& members,
                      int own, int next_number);

  struct Guest {
    int64_t id = 0;
    comm::control::DoorRequest request;
    bool answered = false, agreed = false;
  };
  // Members that wait at the door for an answer. Rethrows the error that ended the thread.
  std::vector<Guest> guests() { return waiting(comm::control::DoorRequest::Purpose::enter); }
  // Newcomers that wait at the door for an answer.
  std::vector<Guest> newcomers() { return waiting(comm::control::DoorRequest::Purpose::join); }
  // All members connected to the door, answered or not.
  std::vector<Guest> members_here();
  // Members that have connected since the last call, for any reason.
  std::set<int> take_callers();
  // Sets the leader's number that visitors are told; -1 if unknown.
  void set_leader(int number);
  // True if newcomers or guests may be waiting. Cheap.
  bool has_newcomers() const { return newcomers_ > 0; }
  // True if the member has announced that it leaves.
  bool has_left(int number);
  // True if this worker was asked to leave.
  bool dismissed() const { return dismissed_; }
  void tell(int64_t guest, const comm::control::Frame& frame);
  // True if the guest is still connected.
  bool is_here(int64_t guest);
  // Disconnects all guests, or only those that have received an answer.
  void dismiss();
  void dismiss_answered();
  // Returns when a guest has arrived or left, or after this many seconds.
  void wait(double seconds);

 private:
  struct Visitor : comm::control::Link {
    using Link::Link;
    int64_t id = 0;
    bool wants_in = false, answered = false, agreed = false;
    comm::control::DoorRequest request;
  };

  bool has_second_listener();
  std::vector<Guest> waiting(comm::control::DoorRequest::Purpose purpose);
  void work();
  void serve_strangers();
  void greet(Visitor& stranger, const comm::control::Frame& frame);
  void serve_visitors(bool beats);
  void receive(Visitor& visitor) ARTEL_REQUIRES(mutex_);
  std::string objection(const comm::control::DoorRequest& request) const ARTEL_REQUIRES(mutex_);
  std::vector<std::string> doors() const ARTEL_REQUIRES(mutex_);
  bool leads() const ARTEL_REQUIRES(mutex_);
  void note_change() ARTEL_REQUIRES(mutex_);
  void wake();

  const comm::RunSecret secret_;
  comm::FileHandle listener_;
  std::string address_;
  comm::FileHandle bell_;  // wakes the thread
  std::atomic<bool> stopping_{false}, dismissed_{false};
  std::atomic<int> newcomers_{0};
  // Unauthenticated connections. Only the thread uses them, without the mutex, so that they cannot
  // delay the worker.
  std::list<Visitor> strangers_;
  comm::control::Strangers limits_;

  Mutex mutex_;  // guards the members below
  Condition changed_;
  int64_t changes_ ARTEL_GUARDED_BY(mutex_) = 0;
  int64_t seen_ ARTEL_GUARDED_BY(mutex_) = 0;
  std::exception_ptr failure_ ARTEL_GUARDED_BY(mutex_);  // of the thread
  comm::FileHandle second_listener_ ARTEL_GUARDED_BY(mutex_);
  int64_t generation_ ARTEL_GUARDED_BY(mutex_) = 0;
  std::vector<comm::control::Participant> members_ ARTEL_GUARDED_BY(mutex_);
  int own_ ARTEL_GUARDED_BY(mutex_) = -1;
  int next_number_ ARTEL_GUARDED_BY(mutex_) = 0;
  std::set<int> left_ ARTEL_GUARDED_BY(mutex_);
  std::set<int> callers_ ARTEL_GUARDED_BY(mutex_);
  int leader_ ARTEL_GUARDED_BY(mutex_) = -1;
  int64_t visitors_ever_ ARTEL_GUARDED_BY(mutex_) = 0;
  // Authenticated connections that have sent their request.
  std::list<Visitor> visitors_ ARTEL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace artel
