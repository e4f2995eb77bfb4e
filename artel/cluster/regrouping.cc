#include "artel/cluster/regrouping.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "artel/base/error.h"
#include "artel/cluster/launcher.h"

namespace artel {
namespace {

using namespace comm::control;

constexpr double kLookSeconds = 0.002;
// For a member that has been silent for most of the patience already: four signs of life.
constexpr double kLastChanceSeconds = 2, kMost = 0.7;

// The lowest number that none of the servers has.
int free_server(const std::vector<Participant>& members) {
  int free = 0;
  while (std::ranges::count(members, free, &Participant::server) > 0) ++free;
  return free;
}

Election::Members numbers_by_rank(const std::vector<Participant>& members) {
  Election::Members numbers;
  for (const Participant& member : members) numbers.push_back(member.number);
  return numbers;
}

Election make_election(const Membership& before, const RegroupingOptions& options) {
  std::vector<Election::Members> agreed;
  for (const Roster& roster : options.agreed) agreed.push_back(numbers_by_rank(roster.members));
  return {numbers_by_rank(before.everybody()), options.self.number, std::move(agreed)};
}

int64_t highest_generation(const Membership& before, const RegroupingOptions& options) {
  int64_t highest = before.generation;
  for (const Roster& roster : options.agreed) highest = std::max(highest, roster.generation);
  return highest;
}

}  // namespace

// A connection to another member's door.
struct Regrouping::Line {
  Line(const Participant& the_member, Knock::Wish the_wish)
      : member(the_member), wish(the_wish), attempt(parse_endpoint(the_member.door)) {}

  Participant member;
  Knock::Wish wish;
  Attempt attempt;
  std::optional<Link> link;  // when it is connected
  bool answered = false;
  bool closed = false;
  std::string refusal;  // the others continue without this worker
  Clock::time_point heard = Clock::now();
};

Regrouping::Regrouping(Door& door, const Membership& before, const RegroupingOptions& options)
    : door_(door),
      generation_(highest_generation(before, options)),
      before_(before.everybody()),
      options_(options),
      election_(make_election(before, options)) {}

Regrouping::~Regrouping() { door_.set_leader(-1); }

double Regrouping::patience_with(const Line& line) const {
  const auto sign = options_.signs.find(line.member.number);
  const bool suspect = !line.answered && sign != options_.signs.end() &&
                       sign->second.silent_seconds > kMost * options_.patience;
  return suspect ? std::min(options_.patience, kLastChanceSeconds) : options_.patience;
}

Roster Regrouping::meet() {
  while (true) {
    hear_door();
    for (auto& [number, line] : lines_) hear(*line);
    if (election_.outcome() == Election::Outcome::open)
      std::erase_if(lines_, [](const auto& each) { return each.second->closed; });
    for (const Election::Action& action : election_.step()) perform(action);
    door_.set_leader(election_.announced_leader());
    switch (election_.outcome()) {
      case Election::Outcome::leads:
      case Election::Outcome::follows:
        lines_.clear();
        return *proposal_;
      case Election::Outcome::apart:
        stop_apart();
      default:
        break;
    }
    require(!options_.deadline.passed(), ErrorKind::timeout,
            "[cluster] the workers that are left did not meet again before the deadline");
    door_.wait(kLookSeconds);
  }
}

// Tells the election who has come to this door, who has gone, and who has agreed.
void Regrouping::hear_door() {
  const auto is_member = [&](int number) {
    return std::ranges::count(before_, number, &Participant::number) > 0;
  };
  for (const int caller : door_.take_callers()) election_.heard(caller);
  std::map<int, int64_t> here;
  std::set<int> agreed;
  for (const Door::Guest& guest : door_.members_here()) {
    const int number = guest.knock.self.number;
    if (!is_member(number) || number == options_.self.number) continue;
    here[number] = guest.id;  // the latest one counts
    if (guest.agreed)
      agreed.insert(number);
    else
      agreed.erase(number);
  }
  for (const Participant& member : before_) {
    const auto before = guests_.find(member.number), now = here.find(member.number);
    const bool was = before != guests_.end(), is = now != here.end();
    if (was && (!is || before->second != now->second)) election_.guest_left(member.number);
    if (is && (!was || before->second != now->second)) election_.guest_came(member.number);
    if (door_.has_left(member.number)) election_.ended(member.number);
  }
  guests_ = std::move(here);
  for (const int number : agreed) election_.agreed(number);
}

void Regrouping::hear(Line& line) {
  const int number = line.member.number;
  if (!line.link && line.attempt.look() == Attempt::State::connected) {
    line.link.emplace(line.attempt.take());
    line.link->introduce(
        door_.secret(), FrameType::knock,
        to_body(Knock{.wish = line.wish, .generation = generation_, .self = options_.self}));
  }
  if (line.link) {
    line.link->flush();
    line.link->read([&](const Frame& frame) { hear_frame(line, frame); });
    require(line.refusal.empty(), ErrorKind::cancelled, "[cluster] {}", line.refusal);
    line.closed = line.closed || line.link->closed;
  } else if (line.attempt.look() == Attempt::State::refused) {
    election_.ended(number);
    line.closed = true;
    return;
  } else if (line.attempt.look() == Attempt::State::failed) {
    election_.fell_silent(number);
  }
  if (!line.closed && seconds_between(line.heard, Clock::now()) > patience_with(line)) {
    election_.fell_silent(number);
    line.closed = !line.link;  // to be called again
  }
  if (line.closed) election_.closed(number);
}

void Regrouping::hear_frame(Line& line, const Frame& frame) {
  const int number = line.member.number;
  line.heard = Clock::now();
  line.answered = true;
  if (frame.type == FrameType::refusal) {
    line.refusal = frame.body;
  } else if (frame.type == FrameType::leave) {
    election_.ended(number);
    line.closed = true;
  } else if (frame.type == FrameType::beat) {
    election_.door_spoke(number, frame.body.empty() ? -1 : std::atoi(frame.body.c_str()));
  } else if (frame.type == FrameType::roster) {
    const Roster roster = roster_from(frame.body);
    Election::Members ended;
    for (const Roster::Change& change : roster.changes)
      if (change.what == "ended" || change.what == "left") ended.push_back(change.number);
    election_.proposed(number, numbers_by_rank(roster.members), ended);
    if (election_.outcome() == Election::Outcome::follows) proposal_ = roster;
  }
}

void Regrouping::perform(const Election::Action& action) {
  using Kind = Election::Action::Kind;
  switch (action.kind) {
    case Kind::enter:
    case Kind::probe:
      lines_[action.peer] = std::make_unique<Line>(
          *std::ranges::find(before_, action.peer, &Participant::number),
          action.kind == Kind::enter ? Knock::Wish::enter : Knock::Wish::probe);
      break;
    case Kind::hang_up:
      lines_.erase(action.peer);
      break;
    case Kind::propose:
      propose();
      break;
    case Kind::withdraw:
      door_.dismiss_told();
      told_.clear();
      std::erase_if(guests_, [&](const auto& guest) { return !door_.is_here(guest.second); });
      break;
    case Kind::agree:
      leader_ = std::move(lines_.at(action.peer));
      leader_->link->queue(FrameType::agree, {});
      leader_->link->flush();
      break;
  }
}

void Regrouping::propose() {
  proposal_ = next_membership();
  std::vector<Door::Guest> coming = newcomers();
  for (const Door::Guest& guest : coming) {
    Participant member = guest.knock.self;
    member.number = proposal_->next_number++;
    const auto before = options_.lost_after.find(member.place);
    member.after_step = before == options_.lost_after.end() ? -1 : before->second;
    if (member.server >= 0) member.server = free_server(proposal_->members);
    proposal_->members.push_back(member);
    proposal_->changes.push_back({member.number, "joins"});
    told_.insert(guest.id);
  }
  for (const auto& [number, id] : guests_)
    if (std::ranges::count(proposal_->members, number, &Participant::number) > 0) told_.insert(id);
  const Frame news = {FrameType::roster, to_body(*proposal_)};
  for (const int64_t guest : told_) door_.tell(guest, news);
}

// Without newcomers.
Roster Regrouping::next_membership() const {
  Roster roster;
  roster.generation = std::max(generation_, proposal_ ? proposal_->generation : 0) + 1;
  for (const Door::Guest& guest : door_.members_here())
    roster.generation = std::max(roster.generation, guest.knock.generation + 1);
  const Election::Members remaining = election_.remaining();
  for (const Participant& member : before_) {
    if (std::ranges::count(remaining, member.number) > 0)
      roster.members.push_back(member);
    else
      roster.changes.push_back({member.number, reason(member)});
  }
  roster.next_number = options_.next_number;
  for (const Roster& agreed : options_.agreed)
    roster.next_number = std::max(roster.next_number, agreed.next_number);
  if (proposal_) roster.next_number = std::max(roster.next_number, proposal_->next_number);
  roster.address = options_.address();
  return roster;
}

std::vector<Door::Guest> Regrouping::newcomers() {
  std::vector<Door::Guest> here = door_.newcomers();
  std::erase_if(here,
                [&](const Door::Guest& guest) { return !options_.accepted.contains(guest.id); });
  return here;
}

std::string Regrouping::reason(const Participant& member) const {
  if (door_.has_left(member.number)) return "left";
  if (election_.has_ended(member.number)) return "ended";
  const auto sign = options_.signs.find(member.number);
  const bool known = sign != options_.signs.end() && !sign->second.phase.empty();
  return fmt::format("did not answer for {:g} s{}", options_.patience,
                     known ? ", last seen in " + sign->second.phase : "");
}

void Regrouping::stop_apart() const {
  tell_launcher("apart");
  const int here = election_.count_present();
  fail(ErrorKind::communication,
       "[cluster] {} of {} workers can be reached, and the others may go on without them: this "
       "side stops; resume it from its last checkpoint if they have ended, too",
       here, here + election_.count_silent());
}

void Regrouping::check() {
  if (leader_) {
    Link& link = *leader_->link;
    link.flush();
    link.read([&](const Frame& frame) {
      leader_->heard = Clock::now();
      if (frame.type == FrameType::leave) link.closed = true;
    });
    const bool silent = seconds_between(leader_->heard, Clock::now()) > options_.patience;
    require(!link.closed && !silent, ErrorKind::communication,
            "[cluster] worker {} was lost while the new group was formed", leader_->member.number);
  }
  for (const int64_t guest : told_)
    require(door_.is_here(guest), ErrorKind::communication,
            "[cluster] a worker was lost while the new group was formed");
}

}  // namespace artel
