#include "artel/cluster/regrouping.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "artel/base/error.h"
#include "artel/cluster/cut_paths.h"
#include "artel/cluster/launcher.h"
#include "artel/cluster/worker_name.h"

namespace artel {
namespace {

using namespace comm::control;

constexpr double kLookSeconds = 0.002;
// Time left for a member that has been silent for most of the patience: four heartbeats.
constexpr double kLastChanceSeconds = 2, kMost = 0.7;

// The lowest unused server number.
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

std::vector<Participant> all_members(const Membership& before, const RegroupingOptions& options) {
  std::vector<Participant> all = before.everybody();
  for (const Roster& roster : options.agreed)
    for (const Participant& member : roster.members)
      if (std::ranges::count(all, member.number, &Participant::number) == 0) all.push_back(member);
  return all;
}

// The reason given for members that were told to leave.
constexpr std::string_view kLeft = "left";

Election make_election(const Membership& before, const RegroupingOptions& options) {
  std::vector<Election::Members> agreed;
  for (const Roster& roster : options.agreed) agreed.push_back(numbers_by_rank(roster.members));
  return {numbers_by_rank(before.everybody()), options.self.number, agreed};
}

int64_t highest_generation(const Membership& before, const RegroupingOptions& options) {
  int64_t highest = before.generation;
  for (const Roster& roster : options.agreed) highest = std::max(highest, roster.generation);
  return highest;
}

}  // namespace

// A connection to another member's door.
struct Regrouping::Line {
  Line(const Participant& the_member, DoorRequest::Purpose the_purpose)
      : member(the_member), purpose(the_purpose), attempt(parse_endpoint(the_member.door)) {}

  Participant member;
  DoorRequest::Purpose purpose;
  Attempt attempt;
  std::optional<Link> link;  // set once connected
  bool answered = false;
  bool closed = false;
  std::string refusal;  // the others continue without this worker
  std::string cut_off;  // it has to leave
  Clock::time_point heard = Clock::now();
};

Regrouping::Regrouping(Door& door, const Membership& before, const RegroupingOptions& options)
    : door_(door),
      generation_(highest_generation(before, options)),
      before_(all_members(before, options)),
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
            "[cluster] regrouping timed out before all remaining workers had answered; resume the "
            "run from its last checkpoint");
    door_.wait(kLookSeconds);
  }
}

// Reports arrivals, departures, and agreements at this door to the election.
void Regrouping::hear_door() {
  const auto is_member = [&](int number) {
    return std::ranges::count(before_, number, &Participant::number) > 0;
  };
  for (const int caller : door_.take_callers()) election_.heard(caller);
  std::map<int, int64_t> here;
  std::set<int> agreed;
  const std::vector<Door::Guest> guests = door_.members_here();
  dismiss_cut_off(guests);
  for (const Door::Guest& guest : guests) {
    const int number = guest.request.self.number;
    if (!is_member(number) || number == options_.self.number || cut_off_.contains(number)) continue;
    here[number] = guest.id;  // the latest connection counts
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

// Called by the leader. Once all living members wait at its door, tells the members that must leave
// because of cut paths. They announce their departure or die, and the leader no longer waits for
// them.
void Regrouping::dismiss_cut_off(const std::vector<Door::Guest>& guests) {
  if (election_.leader() != options_.self.number) return;
  std::map<int, const Door::Guest*> here;
  for (const Door::Guest& guest : guests) {
    const int number = guest.request.self.number;
    here[number] = &guest;
    if (cut_off_.contains(number) && !guest.answered)  // it has connected again
      door_.tell(guest.id, {FrameType::cut_off, cut_off_[number]});
  }
  std::vector<Participant> present;
  std::set<std::pair<int, int>> cut;
  for (const Participant& member : before_) {
    const int number = member.number;
    if (number != options_.self.number) {
      if (election_.is_lost(number) || cut_off_.contains(number)) continue;
      if (!here.contains(number)) return;
      for (const int other : here[number]->request.unreachable)
        cut.insert(std::minmax(number, other));
    }
    present.push_back(member);
  }
  if (cut.empty()) return;
  for (const int number : members_to_leave(present, cut)) {
    std::vector<std::string> others;
    for (const Participant& other : present)
      if (cut.contains(std::minmax(number, other.number)))
        others.push_back(fmt::format("{} on host {}", name_of(other), other.host));
    cut_off_[number] = fmt::format("cannot reach {}", fmt::join(others, ", "));
    door_.tell(here[number]->id, {FrameType::cut_off, cut_off_[number]});
  }
}

void Regrouping::hear(Line& line) {
  const int number = line.member.number;
  if (!line.link && line.attempt.look() == Attempt::State::connected) {
    line.link.emplace(line.attempt.take());
    line.link->introduce(door_.secret(), FrameType::request,
                         to_body(DoorRequest{.purpose = line.purpose,
                                             .generation = generation_,
                                             .self = options_.self,
                                             .unreachable = {options_.unreachable.begin(),
                                                             options_.unreachable.end()}}));
  }
  if (line.link) {
    line.link->flush();
    line.link->read([&](const Frame& frame) { hear_frame(line, frame); });
    require(line.refusal.empty(), ErrorKind::cancelled, "[cluster] {}", line.refusal);
    if (!line.cut_off.empty())
      throw CutOff(ErrorKind::communication,
                   fmt::format("[cluster] {} on host {} {}, although both reach {}; it leaves the "
                               "run; check the network between these hosts",
                               name_of(options_.self), options_.self.host, line.cut_off,
                               name_of(line.member)));
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
    line.closed = !line.link;  // triggers a new attempt
  }
  if (line.closed) election_.closed(number);
}

void Regrouping::hear_frame(Line& line, const Frame& frame) {
  const int number = line.member.number;
  line.heard = Clock::now();
  line.answered = true;
  if (frame.type == FrameType::refusal) {
    line.refusal = frame.body;
  } else if (frame.type == FrameType::cut_off) {
    line.cut_off = frame.body;
  } else if (frame.type == FrameType::leave) {
    election_.ended(number);
    line.closed = true;
  } else if (frame.type == FrameType::beat) {
    election_.door_spoke(number, frame.body.empty() ? -1 : std::atoi(frame.body.c_str()));
  } else if (frame.type == FrameType::roster) {
    const Roster roster = roster_from(frame.body);
    Election::Members ended;
    for (const Roster::Change& change : roster.changes)
      if (change.what == "ended" || change.what.starts_with(kLeft)) ended.push_back(change.number);
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
          action.kind == Kind::enter ? DoorRequest::Purpose::enter : DoorRequest::Purpose::probe);
      break;
    case Kind::hang_up:
      lines_.erase(action.peer);
      break;
    case Kind::propose:
      propose();
      break;
    case Kind::withdraw:
      door_.dismiss_answered();
      informed_.clear();
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
    Participant member = guest.request.self;
    member.number = proposal_->next_number++;
    const auto before = options_.lost_after.find(member.place);
    member.after_step = before == options_.lost_after.end() ? -1 : before->second;
    if (member.server >= 0) member.server = free_server(proposal_->members);
    proposal_->members.push_back(member);
    proposal_->changes.push_back({member.number, "joins"});
    informed_.emplace(guest.id, worker_name(member));
  }
  for (const auto& [number, id] : guests_) {
    const auto member = std::ranges::find(proposal_->members, number, &Participant::number);
    if (member != proposal_->members.end()) informed_.emplace(id, worker_name(*member));
  }
  const Frame news = {FrameType::roster, to_body(*proposal_)};
  for (const auto& [guest, name] : informed_) door_.tell(guest, news);
}

// The next membership, without newcomers.
Roster Regrouping::next_membership() const {
  Roster roster;
  roster.generation = std::max(generation_, proposal_ ? proposal_->generation : 0) + 1;
  for (const Door::Guest& guest : door_.members_here())
    roster.generation = std::max(roster.generation, guest.request.generation + 1);
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
  if (const auto cut = cut_off_.find(member.number); cut != cut_off_.end())
    return fmt::format("{}: it {}", kLeft, cut->second);
  if (door_.has_left(member.number)) return std::string(kLeft);
  if (election_.has_ended(member.number)) return "ended";
  const auto sign = options_.signs.find(member.number);
  const bool known = sign != options_.signs.end() && !sign->second.phase.empty();
  std::string last;
  if (known)
    last = fmt::format(", last seen {:.1f} s ago in {}",
                       sign->second.silent_seconds + seconds_between(begun_, Clock::now()),
                       sign->second.phase);
  return fmt::format("did not answer for {:g} s{}", options_.patience, last);
}

void Regrouping::stop_apart() const {
  tell_launcher("apart");
  speak_for_the_run();  // worker 0 may be on the other side
  const int here = election_.count_present();
  fail(ErrorKind::communication,
       "[cluster] no quorum: only {} of {} workers can be reached, and the others may continue "
       "without them; if they have ended, too, resume from the last checkpoint",
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
            "[cluster] {} died while the new group was forming", worker_name(leader_->member));
  }
  for (const auto& [guest, name] : informed_)
    require(door_.is_here(guest), ErrorKind::communication,
            "[cluster] {} died while the new group was forming", name);
}

}  // namespace artel
