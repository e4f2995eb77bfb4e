#include "artel/cluster/election.h"

#include <algorithm>
#include <utility>

namespace artel {

Election::Election(const Members& members, int own, const std::vector<Members>& agreed)
    : memberships_(agreed), own_(own) {
  memberships_.insert(memberships_.begin(), members);
  for (const Members& membership : memberships_)
    for (const int member : membership)
      if (peers_.try_emplace(member).second) members_.push_back(member);
}

bool Election::is_lost(int member) const { return peer(member).standing != Standing::present; }

int Election::leader() const {
  return *std::ranges::find_if(members_,
                               [&](int member) { return member == own_ || !is_lost(member); });
}

int Election::announced_leader() const {
  const int first = leader();
  const bool sure = first == own_ || (peer(first).line == Line::enter && peer(first).answered);
  return sure ? first : -1;
}

Election::Members Election::remaining() const {
  Members remaining;
  std::ranges::copy_if(members_, std::back_inserter(remaining),
                       [&](int member) { return member == own_ || peer(member).asked; });
  return remaining;
}

int Election::count_present() const {
  return static_cast<int>(
      std::ranges::count_if(members_, [&](int member) { return !is_lost(member); }));
}

int Election::count_silent() const {
  return static_cast<int>(std::ranges::count_if(
      members_, [&](int member) { return peer(member).standing == Standing::silent; }));
}

bool Election::has_quorum(const std::function<bool(int)>& here,
                          const std::function<bool(int)>& ended) const {
  const auto of = [&](const Members& members) {
    Members left;
    std::ranges::copy_if(members, std::back_inserter(left), [&](int m) { return !ended(m); });
    const auto present = 2 * std::ranges::count_if(left, here);
    return present > std::ssize(left) ||
           (present == std::ssize(left) && !left.empty() && here(left.front()));
  };
  return std::ranges::all_of(memberships_, of);
}

void Election::heard(int member) {
  const auto found = peers_.find(member);
  if (found != peers_.end() && found->second.standing == Standing::silent)
    found->second.standing = Standing::present;
}

void Election::door_spoke(int member, int leader) {
  heard(member);
  peers_.at(member).answered = true;
  if (leader != member) heard(leader);
}

void Election::ended(int member) {
  guest_left(member);
  peers_.at(member) = {.standing = Standing::ended};
}

void Election::fell_silent(int member) {
  Peer& silent = peers_.at(member);
  if (silent.standing == Standing::present) silent.standing = Standing::silent;
}

void Election::closed(int member) {
  peers_.at(member).line = Line::none;
  peers_.at(member).answered = false;
}

void Election::guest_came(int member) {
  heard(member);
  Peer& guest = peers_.at(member);
  if (guest.standing == Standing::ended) return;
  guest.guest = true;
}

void Election::guest_left(int member) {
  Peer& guest = peers_.at(member);
  incomplete_ = incomplete_ || guest.asked;
  guest.guest = guest.asked = guest.agreed = false;
}

void Election::agreed(int member) { peers_.at(member).agreed = peers_.at(member).asked; }

void Election::proposed(int member, const Members& members, const Members& ended) {
  if (outcome_ != Outcome::open || leader() != member || peer(member).line != Line::enter) return;
  const auto in = [](const Members& list) {
    return [&list](int each) { return std::ranges::count(list, each) > 0; };
  };
  outcome_ = has_quorum(in(members), in(ended)) ? Outcome::follows : Outcome::apart;
}

void Election::call(int member, Line line, std::vector<Action>& actions) {
  Peer& called = peers_.at(member);
  if (called.line == line) return;
  hang_up(member, actions);
  called.line = line;
  actions.push_back({line == Line::enter ? Action::Kind::enter : Action::Kind::probe, member});
}

void Election::hang_up(int member, std::vector<Action>& actions) {
  if (peer(member).line == Line::none) return;
  closed(member);
  actions.push_back({Action::Kind::hang_up, member});
}

void Election::withdraw(std::vector<Action>& actions) {
  if (!std::exchange(proposing_, false)) return;
  for (auto& [member, guest] : peers_)
    if (guest.asked) guest.guest = guest.asked = guest.agreed = false;
  actions.push_back({Action::Kind::withdraw});
}

bool Election::waits_for_somebody() const {
  return std::ranges::any_of(members_, [&](int member) {
    return member != own_ && !is_lost(member) && !peer(member).guest;
  });
}

void Election::propose(std::vector<Action>& actions) {
  proposing_ = true;
  incomplete_ = false;
  for (const int member : members_)
    peers_.at(member).asked = peer(member).guest && !is_lost(member);
  actions.push_back({Action::Kind::propose});
}

void Election::lead(std::vector<Action>& actions) {
  const bool lost = std::ranges::any_of(
      members_, [&](int member) { return peer(member).asked && is_lost(member); });
  if (incomplete_ || lost) withdraw(actions);
  if (!proposing_ && !waits_for_somebody()) {
    const auto here = [&](int member) { return !is_lost(member); };
    const auto gone = [&](int member) { return has_ended(member); };
    if (!has_quorum(here, gone)) {
      outcome_ = Outcome::apart;
      return;
    }
    propose(actions);
  }
  const bool all_agreed = std::ranges::all_of(
      members_, [&](int member) { return !peer(member).asked || peer(member).agreed; });
  if (proposing_ && all_agreed) {
    outcome_ = Outcome::leads;
    return;
  }
  // Members that are missing may hang, and silent ones may have woken up.
  for (const int member : members_)
    if (member != own_ && !has_ended(member) && !(peer(member).guest && !proposing_))
      call(member, Line::probe, actions);
}

std::vector<Election::Action> Election::step() {
  std::vector<Action> actions;
  if (outcome_ == Outcome::follows) {
    actions.push_back({Action::Kind::agree, leader()});
    return actions;
  }
  if (outcome_ != Outcome::open) return actions;
  const int first = leader();
  if (first == own_) {
    lead(actions);
    return actions;
  }
  withdraw(actions);
  for (const int member : members_)
    if (member != first) hang_up(member, actions);
  call(first, Line::enter, actions);
  return actions;
}

}  // namespace artel
