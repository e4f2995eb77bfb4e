// Elects a leader and agrees on the next membership after a group has failed. A pure state machine
// without sockets, threads, or clocks. The caller reports events and carries out the actions that
// `step` returns. A unit test explores all orders of messages, pauses, and deaths for small
// memberships.
//
// The reachable member with the lowest rank leads. All others connect to its door and wait there.
//
// - The leader waits until every other member is connected or lost, then proposes the next
//   membership. The group forms when all its members have agreed. A member that has agreed cannot
//   know whether the others have. From then on, it agrees only to memberships that also contain a
//   quorum of the one it agreed to. A membership therefore never has two successors.
// - A silent member is skipped. Any sign of life reverses that: a connection from the member, or a
//   report from another member that has just heard from it. Either all members wait for one that
//   wakes up late, or none does.
// - A leader that hears from a lower rank withdraws its proposal and connects to that member's
// door.
// - A quorum is more than half of the members whose processes have not ended, or exactly half if
//   that half has the lowest rank. The two sides of a network split never both continue.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace artel {

class Election {
 public:
  enum class Outcome : uint8_t {
    open,
    leads,     // all members have agreed to this member's proposal
    follows,   // this member has agreed to the leader's proposal
    rejected,  // the others continue without this member
    apart,     // no quorum can be reached
  };
  struct Action {
    enum class Kind : uint8_t {
      enter,     // connect to the peer's door and wait there
      probe,     // connect to the peer's door to test whether it answers
      hang_up,   // close the connection to the peer's door
      propose,   // send the next membership to all members that wait at this door
      withdraw,  // disconnect the members that received the proposal
      agree,     // accept the peer's proposal
    };
    Kind kind;
    int peer = -1;
  };

  using Members = std::vector<int>;  // numbers of the members, by rank

  // `members` belong to the last group that formed and include `own`. `agreed` are later
  // memberships that this member has agreed to. Their newcomers take part in the election, because
  // their group may have formed. If it has not, they answer that they are outside the run.
  Election(const Members& members, int own, const std::vector<Members>& agreed = {});

  // The peer's door has sent a message. `leader` is the member that the peer waits for and has
  // heard from since it connected: the peer itself if it leads, -1 if unknown.
  void door_spoke(int peer, int leader);
  // The peer has connected to this member's door.
  void heard(int peer);
  // The peer's process has ended, or the peer has left the run.
  void ended(int peer);
  // The peer's door has not sent a message for the patience.
  void fell_silent(int peer);
  // The connection to the peer's door is closed.
  void closed(int peer);
  // The peer started or stopped waiting at this member's door.
  void guest_came(int peer);
  void guest_left(int peer);
  // A guest accepts the proposal.
  void agreed(int peer);
  // The leader proposes the next membership. `ended` are the members left out because their
  // processes have ended.
  void proposed(int peer, const Members& members, const Members& ended);
  // A peer reports that the run continues without this member.
  void rejected() { outcome_ = Outcome::rejected; }

  // Call after events. Carry out the actions in order.
  std::vector<Action> step();

  Outcome outcome() const { return outcome_; }
  int leader() const;
  // The leader that this member's door announces; -1 if unknown.
  int announced_leader() const;
  // The proposed membership, by rank.
  Members remaining() const;
  bool is_lost(int member) const;
  bool has_ended(int member) const { return peer(member).standing == Standing::ended; }
  int count_present() const;
  int count_silent() const;
  auto operator<=>(const Election&) const = default;

 private:
  enum class Standing : uint8_t { present, silent, ended };
  enum class Line : uint8_t { none, enter, probe };
  struct Peer {
    Standing standing = Standing::present;
    Line line = Line::none;  // connection to the peer's door
    bool answered = false;   // the peer has answered on `line`
    bool guest = false;      // the peer waits at this member's door
    bool asked = false;      // the guest has received the proposal
    bool agreed = false;     // the guest has accepted the proposal
    auto operator<=>(const Peer&) const = default;
  };

  const Peer& peer(int member) const { return peers_.at(member); }
  bool has_quorum(const std::function<bool(int)>& here,
                  const std::function<bool(int)>& ended) const;
  bool waits_for_somebody() const;
  void call(int member, Line line, std::vector<Action>& actions);
  void hang_up(int member, std::vector<Action>& actions);
  void withdraw(std::vector<Action>& actions);
  void lead(std::vector<Action>& actions);
  void propose(std::vector<Action>& actions);

  std::vector<Members> memberships_;  // the last one, and possible successors
  Members members_;                   // members of any of these
  int own_;
  std::map<int, Peer> peers_;
  Outcome outcome_ = Outcome::open;
  bool proposing_ = false;
  bool incomplete_ = false;  // a guest has left after it received the proposal
};

}  // namespace artel
