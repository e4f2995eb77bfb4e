#include "artel/cluster/regrouping.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "artel/base/error.h"
#include "artel/cluster/launcher.h"

namespace artel {
namespace {

using namespace comm::control;

constexpr double kLookSeconds = 0.02;
// For whoever has been silent for most of the patience already: four signs of life.
constexpr double kLastChanceSeconds = 2, kMost = 0.7;

// The lowest number that none of the servers has.
int free_server(const std::vector<Participant>& members) {
  int free = 0;
  while (std::ranges::count(members, free, &Participant::server) > 0) ++free;
  return free;
}

}  // namespace

// Another worker at whose door this one has knocked.
struct Regrouping::Peer {
  Peer(const Participant& the_worker, comm::FileHandle socket)
      : worker(the_worker), link(std::move(socket)) {}

  Participant worker;
  Link link;
  Clock::time_point heard = Clock::now();
};

Regrouping::Regrouping(Door& door, const Membership& before, const RegroupingOptions& options)
    : door_(door), generation_(before.generation), before_(before.everybody()), options_(options) {}

Regrouping::~Regrouping() = default;

bool Regrouping::lost(const Participant& peer) const {
  return ended_.contains(peer.number) || silent_.contains(peer.number);
}

double Regrouping::patience_with(const Participant& peer) const {
  const auto sign = options_.signs.find(peer.number);
  const bool suspect =
      sign != options_.signs.end() && sign->second.silent_seconds > kMost * options_.patience;
  return suspect ? std::min(options_.patience, kLastChanceSeconds) : options_.patience;
}

// Nothing: the worker has ended, or does not answer.
std::optional<Regrouping::Peer> Regrouping::call(const Participant& peer, Knock::Wish wish) {
  if (door_.has_left(peer.number)) {
    ended_.insert(peer.number);
    return std::nullopt;
  }
  Reached reached = reach(parse_endpoint(peer.door), patience_with(peer));
  if (reached.socket.get() < 0) {
    (reached.refused ? ended_ : silent_).insert(peer.number);
    return std::nullopt;
  }
  Peer called(peer, std::move(reached.socket));
  called.link.introduce(
      door_.secret(), FrameType::knock,
      to_body(Knock{.wish = wish, .generation = generation_, .self = options_.self}));
  return called;
}

// Takes what the peer has sent; whoever refuses this worker has gone on without it.
void Regrouping::listen_to(Peer& peer, const std::function<void(const Frame&)>& handle) {
  std::string refusal;
  peer.link.flush();
  peer.link.read([&](const Frame& frame) {
    peer.heard = Clock::now();
    if (frame.type == FrameType::refusal)
      refusal = frame.body;
    else if (frame.type == FrameType::leave)
      ended_.insert(peer.worker.number);
    else if (frame.type != FrameType::beat)
      handle(frame);
  });
  require(refusal.empty(), ErrorKind::cancelled, "[cluster] {}", refusal);
  if (!peer.link.closed && seconds_between(peer.heard, Clock::now()) > patience_with(peer.worker))
    silent_.insert(peer.worker.number);
}

Roster Regrouping::meet() {
  while (true) {
    for (const Participant& member : before_) {
      if (member.number == options_.self.number) return lead();
      if (lost(member)) continue;
      if (std::optional<Roster> roster = follow(member)) return *roster;
      break;  // whoever was lost on the way is known now
    }
    require(!options_.deadline.passed(), ErrorKind::timeout,
            "[cluster] the workers that are left did not meet again before the deadline");
  }
}

// Nothing: the leader is no longer there.
std::optional<Roster> Regrouping::follow(const Participant& leader) {
  std::optional<Peer> peer = call(leader, Knock::Wish::enter);
  std::optional<Roster> roster;
  while (peer && !roster && !peer->link.closed && !lost(leader) && !options_.deadline.passed()) {
    listen_to(*peer, [&](const Frame& frame) {
      if (frame.type == FrameType::roster) roster = roster_from(frame.body);
    });
    if (!roster) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (roster) leader_ = std::make_unique<Peer>(std::move(*peer));
  return roster;
}

Roster Regrouping::lead() {
  std::map<int, Peer> probes;  // of those who have not come yet
  while (true) {
    const std::vector<Door::Guest> guests = door_.guests();
    bool complete = true;
    for (const Participant& member : before_) {
      const bool here = member.number == options_.self.number ||
                        std::any_of(guests.begin(), guests.end(), [&](const Door::Guest& guest) {
                          return guest.knock.self.number == member.number;
                        });
      if (here || lost(member)) continue;
      complete = false;
      const auto known = probes.find(member.number);
      if (known == probes.end()) {
        if (std::optional<Peer> peer = call(member, Knock::Wish::probe))
          probes.emplace(member.number, std::move(*peer));
      } else {
        listen_to(known->second, [](const Frame&) {});
        if (known->second.link.closed || door_.has_left(member.number))
          probes.erase(known);  // the next call says why
      }
    }
    if (complete) return next_membership(guests);
    require(!options_.deadline.passed(), ErrorKind::timeout,
            "[cluster] the workers that are left did not meet again before the deadline");
    door_.wait(kLookSeconds);
  }
}

Roster Regrouping::next_membership(const std::vector<Door::Guest>& guests) {
  Roster roster;
  roster.generation = generation_ + 1;
  // Some may have been told of a next membership by somebody who died over it.
  for (const Door::Guest& guest : guests)
    roster.generation = std::max(roster.generation, guest.knock.generation + 1);
  for (const Participant& member : before_) {
    if (lost(member))
      roster.changes.push_back({member.number, reason(member)});
    else
      roster.members.push_back(member);
  }
  const size_t here = roster.members.size(), missing = silent_.size();
  const auto lowest = std::find_if(before_.begin(), before_.end(), [&](const Participant& member) {
    return !ended_.contains(member.number);
  });
  if (here < missing || (here == missing && silent_.contains(lowest->number))) {
    tell_launcher("apart");
    fail(ErrorKind::communication,
         "[cluster] {} of {} workers can be reached, and the others may go on without them: this "
         "side stops; resume it from its last checkpoint if they have ended, too",
         here, here + missing);
  }
  roster.next_number = options_.next_number;
  std::vector<Door::Guest> all = newcomers();
  for (const Door::Guest& guest : all) {
    Participant member = guest.knock.self;
    member.number = roster.next_number++;
    const auto before = options_.lost_after.find(member.place);
    member.after_step = before == options_.lost_after.end() ? -1 : before->second;
    if (member.server >= 0) member.server = free_server(roster.members);
    roster.members.push_back(member);
    roster.changes.push_back({member.number, "joins"});
  }
  all.insert(all.end(), guests.begin(), guests.end());
  roster.address = options_.address();
  const Frame news = {FrameType::roster, to_body(roster)};
  for (const Door::Guest& guest : all) {
    door_.tell(guest.id, news);
    told_.insert(guest.id);
  }
  return roster;
}

std::vector<Door::Guest> Regrouping::newcomers() {
  std::vector<Door::Guest> here = door_.newcomers();
  std::erase_if(here,
                [&](const Door::Guest& guest) { return !options_.accepted.contains(guest.id); });
  return here;
}

std::string Regrouping::reason(const Participant& member) {
  if (door_.has_left(member.number)) return "left";
  if (ended_.contains(member.number)) return "ended";
  const auto sign = options_.signs.find(member.number);
  const bool known = sign != options_.signs.end() && !sign->second.phase.empty();
  return fmt::format("did not answer for {:g} s{}", options_.patience,
                     known ? ", last seen in " + sign->second.phase : "");
}

void Regrouping::check() {
  if (leader_) {
    listen_to(*leader_, [](const Frame&) {});
    require(!leader_->link.closed && !lost(leader_->worker), ErrorKind::communication,
            "[cluster] worker {} was lost while the new group was formed", leader_->worker.number);
  }
  for (const int64_t guest : told_)
    require(door_.is_here(guest), ErrorKind::communication,
            "[cluster] a worker was lost while the new group was formed");
}

}  // namespace artel
