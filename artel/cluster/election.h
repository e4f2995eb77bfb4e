// Finds the next membership after a group has broken: a pure state machine, without sockets,
// threads or clocks. The caller reports events and carries out the actions that `step` returns. A
// unit test explores all orders of messages, pauses, and deaths for small memberships.
//
// The lowest rank that answers leads; all others wait at its door.
//
// - The leader waits until each other member waits at its door or is lost, and proposes the next
//   membership. The group is formed when every member of it has agreed. A member that has agreed
//   may not learn whether the others have, too. So it then agrees only to memberships that have a
//   quorum of that one as well, and there are never two successors of one membership.
// - A member that falls silent is skipped. Any sign of life reverses that: its knock, or another
//   member that has just heard from it. So a member that wakes up late is either waited for by all,
//   or by none.
// - A leader that hears from a lower rank withdraws its proposal and waits at that one's door.
// - Of the members that are not known to have ended, more than half must take part, or half of them
//   with the lowest rank. So the two sides of a network split never both continue.
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
    leads,     // all have agreed to this member's proposal
    follows,   // this member has agreed to the leader's proposal
    rejected,  // the others continue without this member
    apart,     // too few members can be reached
  };
  struct Action {
    enum class Kind : uint8_t {
      enter,     // knock at the peer's door and wait there
      probe,     // knock at the peer's door to hear whether it lives
      hang_up,   // close the connection to the peer's door
      propose,   // tell all members that wait at this one's door who is in the next membership
      withdraw,  // hang up on those that were told
      agree,     // tell the peer that its proposal is accepted
    };
    Kind kind;
    int peer = -1;
  };

  using Members = std::vector<int>;  // by rank; numbers identify them

  // `members`: of the last group that was formed, this one among them. `agreed`: later memberships
  // that this one has agreed to.
  Election(Members members, int own, std::vector<Members> agreed = {});

  // The peer's door has spoken. `leader`: whom the peer waits for, and has heard from since it
  // knocked there; itself if it leads; -1: unknown.
  void door_spoke(int peer, int leader);
  // The peer has knocked at this member's door.
  void heard(int peer);
  // The peer's process has ended, or it has left the run.
  void ended(int peer);
  // The peer's door has not spoken for the patience.
  void fell_silent(int peer);
  // The connection to the peer's door is closed.
  void closed(int peer);
  // The peer waits at this member's door, or does not any more.
  void guest_came(int peer);
  void guest_left(int peer);
  // A guest accepts the proposal.
  void agreed(int peer);
  // The peer at whose door this member waits proposes the next membership. `ended`: members that
  // are not in it because their processes have ended.
  void proposed(int peer, const Members& members, const Members& ended);
  // A member says that the run continues without this one.
  void rejected() { outcome_ = Outcome::rejected; }

  // Call after events; carry the actions out in their order.
  std::vector<Action> step();

  Outcome outcome() const { return outcome_; }
  int leader() const;
  // What this member's door should say.
  int announced_leader() const;
  // Members of the proposed membership, by rank.
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
    Line line = Line::none;  // from here to its door
    bool answered = false;   // on that line
    bool guest = false;      // waits at this member's door
    bool asked = false;      // and was told the proposal
    bool agreed = false;     // to it
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

  Members members_;
  int own_;
  std::vector<Members> agreed_;
  std::map<int, Peer> peers_;
  Outcome outcome_ = Outcome::open;
  bool proposing_ = false;
  bool incomplete_ = false;  // one of those that were told the proposal has left
};

}  // namespace artel
